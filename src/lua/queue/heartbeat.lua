-- Says that a listener is alive, or that it ends, and answers which listeners are alive, unless the
-- caller knows that.
--
-- KIND    single
-- ROLE    listener
-- USES    answer sets told live
-- KEYS    alive
-- READS   alive
-- WRITES  alive
-- ARGV    database
--         name
--         life_ms         how long the heartbeat is good for; 0: the listener ends
--         told            what the listener obeys, in case that Redis has forgotten it
--         known           the version of the names that the caller knows; 0: it knows none
-- RETURNS now_us
--         was_alive       1: the last heartbeat of this name had not ended
--         version         of the names, and of what they were told; if it is known, none follow
--         next_end_ms     when the first heartbeat ends; 0: none is alive
--         then per listener: name, end_ms
--             end_ms          when its heartbeat ends, less what it was told
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log listeners); 0.5 us a listener where the names have changed
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
  local key, name, life_ms, known = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
  local score = call('ZSCORE', key, name)
  local was_alive = time_of(score) > now_ms
  local told = was_alive and told_of(score) or tonumber(ARGV[4])
  local version = version_of(key)

  local n_changed = written('ZREMRANGEBYSCORE', key, 0, now_ms)
  if life_ms > 0 then
    n_changed = n_changed + written('ZADD', key, told_score(now_ms + life_ms, told), name)
  else
    n_changed = n_changed + written('ZREM', key, name)
  end
  shorten_lives(key, now_ms + math.max(life_ms, LIFE_MS))

  local first = alive_read(key, 'LIMIT', 0, 1)
  if #first == 0 then
    write('ZREM', key, NO_NAME)
    return { now_us, was_alive and 1 or 0, 0, 0 }
  end

  if n_changed > 0 or version == 0 then version = version_write(key, version) end
  local reply = { now_us, was_alive and 1 or 0, version, time_of(first[2]) }
  local names = version ~= known and alive_read(key) or {}
  for at = 1, #names do reply[#reply + 1] = names[at] end
  return reply
end
return answer(main)
