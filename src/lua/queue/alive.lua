-- Answers which listeners of any queue are alive.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer live
-- KEYS    alive
-- READS   alive
-- ARGV    database
-- RETURNS now_us
--         then per listener: name, end_ms
--             end_ms          when its heartbeat ends, less what it was told
-- ERRORS  Redis's own
-- COST    O(listeners), 0.5 us each
local function main()
  local reply = alive_read(KEYS[1])
  table.insert(reply, 1, now_us)
  return reply
end
return answer(main)
