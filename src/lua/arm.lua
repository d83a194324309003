-- Sets the triggers of jobs that come near: due within arm_ahead_ms, and without one so far.
-- KEYS    1 due
-- ARGV    1 database and arm_ahead_ms, 2 cursor: up to which due they have theirs, ms
-- RETURNS now us, new cursor ms, 1 if there is more
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100
local function main()
  local from = math.max(tonumber(ARGV[2]), now)
  local near = call('ZRANGEBYSCORE', DUE, '(' .. num(from), num(now + AHEAD), 'WITHSCORES', 'LIMIT', 0, BATCH)
  for i = 1, #near, 2 do
    write('SET', BASE .. 't:' .. near[i], '1', 'PXAT', math.max(tonumber(near[i + 1]) - 1, now + 1), 'NX')
  end
  if #near < 2 * BATCH then return { now_us, now + AHEAD, 0 } end
  -- those of the last millisecond may not be all; where it has more than a call's worth, the alarm claims them
  local last = tonumber(near[#near])
  return { now_us, last - 1 > from and last - 1 or last, 1 }
end
return guard(main)
