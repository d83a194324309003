-- Makes leases longer.
-- KEYS    1 due
-- ARGV    1 database, 2 holder; then per job: id, token, from now ms
-- RETURNS now us; then per job: end of its lease ms | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, run = { now_us }, {}, {}
  for i, h in ipairs(ours(3)) do
    out[i + 1] = h and now + tonumber(ARGV[i * 3 + 2]) or 'EGONE'
    if h then
      ids[#ids + 1] = h.id
      run[#run + 1], run[#run + 2] = out[i + 1], h.id
    end
  end
  rem(RUN, ids)
  add(RUN, run)
  return out
end
return guard(main)
