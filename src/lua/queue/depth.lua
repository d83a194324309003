-- Counts the jobs of a queue, and shows its settings.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer settings
-- KEYS    due none
-- READS   due run dead kept conf
-- ARGV    database
-- RETURNS now_us
--         waiting
--         running
--         dead
--         backlog_ms      how long the oldest due job has waited
--         kept
--         settings        text: as configure answers them
-- ERRORS  Redis's own
-- COST    O(log N)
local function main()
  local ended = call('ZCOUNT', RUN, '-inf', now_ms)
  local oldest_due = time_of(call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2] or now_ms)
  local oldest_end = time_of(call('ZRANGE', RUN, 0, 0, 'WITHSCORES')[2] or now_ms)

  local waiting, running = call('ZCARD', DUE) + ended, call('ZCARD', RUN) - ended
  local backlog_ms = math.max(0, now_ms - math.min(oldest_due, oldest_end))
  local kept = call('ZCOUNT', KEPT, '(' .. decimal(now_ms), '+inf')
  local settings = table.concat(settings_words(settings_read(call('GET', CONF) or '1 ')), ' ')
  return { now_us, waiting, running, call('ZCARD', DEAD), backlog_ms, kept, settings }
end
return answer(main)
