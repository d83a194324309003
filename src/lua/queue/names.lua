-- A page of the names in the registry, in the order of their bytes.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer
-- KEYS    queues
-- READS   queues
-- ARGV    database
--         from            as ZRANGEBYLEX has it: `-`, `[NAME`, or `(NAME` behind the page before
--         to              `+`, `[NAME` or `(NAME`
--         limit
-- RETURNS now_us
--         then per queue: name
-- ERRORS  Redis's own
-- COST    O(log(queues) + limit)
local function main()
  local reply = call('ZRANGEBYLEX', KEYS[1], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
  table.insert(reply, 1, now_us)
  return reply
end
return answer(main)
