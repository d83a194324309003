-- Enters a listener among the live ones of a queue, or takes it out, and answers its rank.
--
-- KIND    single
-- ROLE    listener
-- USES    answer ids notice sets
-- KEYS    due
-- READS   listeners
-- WRITES  listeners notice
-- ARGV    database
--         name
--         life_ms         how long the heartbeat is good for; 0: the listener leaves
-- RETURNS now_us
--         rank            among the live names, in the order of their last 16 bytes; -1: it left
--         n_live
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners), 0.3 us each
local LIFE_MS = 15000

-- Of names whose life ends later than any can. If Redis's clock was set back, names would stay as
-- long as it was set back, those of dead listeners too.
local function shorten_lives(key, last_ms)
  local late = call('ZRANGEBYSCORE', key, '(' .. decimal(last_ms), '+inf', 'LIMIT', 0, BATCH)
  local entries = {}
  for _, name in ipairs(late) do
    entries[#entries + 1], entries[#entries + 2] = decimal(last_ms), name
  end
  set_add(key, entries)
end

local function main()
  local key, name, life_ms = BASE .. 'listeners', ARGV[2], tonumber(ARGV[3])

  local changed = written('ZREMRANGEBYSCORE', key, '-inf', now_ms)
  if life_ms > 0 then
    changed = changed + written('ZADD', key, now_ms + life_ms, name)
  else
    changed = changed + written('ZREM', key, name)
  end
  shorten_lives(key, now_ms + math.max(life_ms, LIFE_MS))
  if changed > 0 then notice_publish('members') end
  if life_ms == 0 then return { now_us, -1, call('ZCARD', key) } end

  local names, bits, rank = call('ZRANGE', key, 0, -1), string.sub(name, -16), 0
  for _, other in ipairs(names) do
    local theirs = string.sub(other, -16)
    if theirs < bits or theirs == bits and bytes_of(other) < bytes_of(name) then rank = rank + 1 end
  end
  return { now_us, rank, #names }
end
return answer(main)
