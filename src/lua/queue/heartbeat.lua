-- Says that a listener is alive, or that it ends, and answers which listeners are alive.
--
-- KIND    single
-- ROLE    listener
-- USES    answer sets told
-- KEYS    alive
-- READS   alive
-- WRITES  alive
-- ARGV    database
--         name
--         life_ms         how long the heartbeat is good for; 0: the listener ends
--         told            what the listener obeys, in case that Redis has forgotten it
-- RETURNS now_us
--         was_alive       1: the last heartbeat of this name had not ended
--         then per listener: name, end_ms
--             end_ms          when its heartbeat ends, less what it was told
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners), 0.5 us each
local LIFE_MS = 15000

-- Of names whose life ends later than any can. If Redis's clock was set back, names would stay as
-- long as it was set back, those of dead listeners too.
local function shorten_lives(key, last_ms)
  local late = call('ZRANGEBYSCORE', key, '(' .. decimal(last_ms), '+inf', 'WITHSCORES', 'LIMIT',
    0, BATCH)
  local entries = {}
  for at = 1, #late, 2 do
    entries[at] = told_score(last_ms, told_of(late[at + 1]))
    entries[at + 1] = late[at]
  end
  set_add(key, entries)
end

local function main()
  local key, name, life_ms = KEYS[1], ARGV[2], tonumber(ARGV[3])
  local score = call('ZSCORE', key, name)
  local was_alive = time_of(score) > now_ms
  local told = was_alive and told_of(score) or tonumber(ARGV[4])

  write('ZREMRANGEBYSCORE', key, '-inf', now_ms)
  if life_ms > 0 then
    write('ZADD', key, told_score(now_ms + life_ms, told), name)
  else
    write('ZREM', key, name)
  end
  shorten_lives(key, now_ms + math.max(life_ms, LIFE_MS))

  local reply = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  table.insert(reply, 1, now_us)
  table.insert(reply, 2, was_alive and 1 or 0)
  return reply
end
return answer(main)
