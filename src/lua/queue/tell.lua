-- Tells listeners that are alive to be quiet, to go on, or to stop, and says on the channel `wake`
-- which these are, so that they look at their heartbeats.
--
-- KIND    single
-- ROLE    listener
-- USES    answer told live
-- KEYS    alive
-- READS   alive
-- WRITES  alive wake
-- ARGV    database
--         name            of a listener, with its digits; or without them, of each that has it
--         told            0: to go on; 1: to be quiet; 2: to stop
-- RETURNS now_us
--         then per listener: name
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners), 0.5 us each
local WAKE = string.sub(KEYS[1], 1, -6) .. 'wake:'
local DIGITS = 17 -- with the slash before them

local function main()
  local key, name, told = KEYS[1], ARGV[2], tonumber(ARGV[3])
  local alive = alive_read(key)

  local reply, entries = { now_us }, {}
  for at = 1, #alive, 2 do
    local is_named = alive[at] == name or string.sub(alive[at], 1, -DIGITS - 1) == name
    if is_named then
      reply[#reply + 1] = alive[at]
      entries[#entries + 1] = told_score(time_of(alive[at + 1]), told)
      entries[#entries + 1] = alive[at]
    end
  end
  if #entries > 0 then
    local version = version_of(key)
    -- What begins with a removal works when Redis is out of memory.
    write('ZREM', key, NO_NAME)
    version_write(key, version)
  end
  for at = 1, #entries, 2 * BATCH do
    write('ZADD', key, unpack(entries, at, math.min(#entries, at + 2 * BATCH - 1)))
  end

  -- It only helps, so its errors are ignored.
  local channel = WAKE .. string.match(ARGV[1], '^%d+')
  for at = 2, #reply do redis.pcall('PUBLISH', channel, 'told ' .. reply[at]) end
  return reply
end
return answer(main)
