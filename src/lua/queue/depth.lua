-- Counts the jobs of a queue.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer
-- KEYS    due none
-- READS   due run dead kept
-- ARGV    database
-- RETURNS now_us
--         waiting
--         running
--         dead
--         backlog_ms      how long the oldest due job has waited
--         kept
-- ERRORS  Redis's own
-- COST    O(log N)
local function main()
  local ended = call('ZCOUNT', RUN, '-inf', now_ms)
  local oldest_due = time_of(call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2] or now_ms)
  local oldest_end = time_of(call('ZRANGE', RUN, 0, 0, 'WITHSCORES')[2] or now_ms)

  local waiting, running = call('ZCARD', DUE) + ended, call('ZCARD', RUN) - ended
  local backlog_ms = math.max(0, now_ms - math.min(oldest_due, oldest_end))
  local kept = call('ZCOUNT', KEPT, '(' .. decimal(now_ms), '+inf')
  return { now_us, waiting, running, call('ZCARD', DEAD), backlog_ms, kept }
end
return answer(main)
