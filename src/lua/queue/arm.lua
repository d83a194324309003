-- Sets the triggers of jobs that come near: due within arm_ahead_ms, and without a trigger so far.
--
-- KIND    single, needs memory
-- ROLE    listener
-- USES    answer triggers
-- KEYS    due none
-- READS   due
-- WRITES  t
-- ARGV    database
--         cursor_ms       the due time up to which jobs have their triggers
-- RETURNS now_us
--         cursor_ms       for the next call
--         more            1: there are more
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100
local function main()
  local from = math.max(tonumber(ARGV[2]), now_ms)
  local near = call('ZRANGEBYSCORE', DUE, '(' .. decimal(from), decimal(now_ms + AHEAD),
    'WITHSCORES', 'LIMIT', 0, BATCH)
  for i = 1, #near, 2 do
    local expires_ms = math.max(time_of(near[i + 1]) - 1, now_ms + 1)
    write('SET', TRIGGER .. near[i], '1', 'PXAT', expires_ms, 'NX')
  end
  if #near < 2 * BATCH then return { now_us, now_ms + AHEAD, 0 } end

  -- Of the last millisecond there may be more. Where one millisecond has more jobs than a call
  -- takes, the alarm claims the rest.
  local last = time_of(near[#near])
  return { now_us, last - 1 > from and last - 1 or last, 1 }
end
return answer(main)
