-- Takes a queue that was removed out of the registry.
--
-- KIND    single
-- ROLE    listener
-- USES    answer
-- KEYS    queues
-- WRITES  queues
-- ARGV    database
--         name
-- RETURNS now_us
-- ERRORS  Redis's own
-- COST    O(log(queues))
local function main()
  write('ZREM', KEYS[1], ARGV[2])
  return { now_us }
end
return answer(main)
