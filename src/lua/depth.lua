-- Counts a queue's jobs.
-- KEYS    1 due
-- ARGV    1 database
-- RETURNS now us, waiting, running, dead, for how many ms the oldest due job waits
-- ERRORS  Redis's own
-- COST    O(log N)
local function main()
  local over = call('ZCOUNT', RUN, '-inf', now)
  local oldest = ms(call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2] or now)
  local ended = ms(call('ZRANGE', RUN, 0, 0, 'WITHSCORES')[2] or now)
  return { now_us, call('ZCARD', DUE) + over, call('ZCARD', RUN) - over, call('ZCARD', DEAD),
    math.max(0, now - math.min(oldest, ended)) }
end
return guard(main)
