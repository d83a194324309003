-- Ends jobs that were done.
-- KEYS    1 due
-- ARGV    1 database; then per job: id, token
-- RETURNS now us; then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids = { now_us }, {}
  call('HLEN', JOBS)
  for i, h in ipairs(ours(2, 2)) do
    out[i + 1] = h and 1 or 'EGONE'
    if h then ids[#ids + 1] = h.id end
  end
  drop(RUN, ids)
  return out
end
return guard(main)
