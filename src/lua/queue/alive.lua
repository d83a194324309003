-- Answers which listeners of any queue are alive.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer
-- KEYS    alive
-- READS   alive
-- ARGV    database
-- RETURNS now_us
--         then per listener: name, end_ms
--             end_ms          when its heartbeat ends, less what it was told
-- ERRORS  Redis's own
-- COST    O(listeners), 0.5 us each
local function main()
  local reply = call('ZRANGEBYSCORE', KEYS[1], '(' .. decimal(now_ms), '+inf', 'WITHSCORES')
  table.insert(reply, 1, now_us)
  return reply
end
return answer(main)
