-- Enters queues into the registry, which has the names of all queues of a space, and says on the
-- channel `wake` which of them are new.
--
-- KIND    single, needs memory, urgent, unasked
-- ROLE    producer
-- USES    answer
-- KEYS    queues
-- READS   queues
-- WRITES  queues wake
-- ARGV    database
--         then per queue: name
-- RETURNS now_us
--         new             how many were not in it
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log(queues)) a name
local WAKE = string.sub(KEYS[1], 1, -7) .. 'wake:'

local function main()
  local key = KEYS[1]
  local known = call('ZMSCORE', key, unpack(ARGV, 2))

  local entries, new = {}, {}
  for at = 2, #ARGV do
    if not known[at - 1] then
      new[#new + 1] = ARGV[at]
      entries[#entries + 1], entries[#entries + 2] = 0, ARGV[at]
    end
  end
  -- All scores are 0, so Redis keeps the names in the order of their bytes.
  if #new > 0 then write('ZADD', key, unpack(entries)) end

  -- It only helps others, so its errors are ignored.
  local channel = WAKE .. string.match(ARGV[1], '^%d+')
  for _, name in ipairs(new) do redis.pcall('PUBLISH', channel, name) end
  return { now_us, #new }
end
return answer(main)
