-- Gives jobs back that were not begun: due as before, their try not counted.
-- KEYS    1 due
-- ARGV    1 database, 2 holder; then per job: id, token
-- RETURNS now us; then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, back = { now_us }, {}
  for i, h in ipairs(ours(2)) do
    out[i + 1] = h and 1 or 'EGONE'
    if h then back[#back + 1] = h end
  end
  give_back(back)
  return out
end
return guard(main)
