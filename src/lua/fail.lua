-- Declares jobs dead at once.
-- KEYS    1 due
-- ARGV    1 database, 2 holder; then per job: id, token, reason
-- RETURNS now us; then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dead, held = { now_us }, {}, {}, {}
  call('ZCARD', DEAD)
  for i, h in ipairs(ours(3)) do
    out[i + 1] = h and 1 or 'EGONE'
    if h then
      ids[#ids + 1], h.reason = h.id, ARGV[i * 3 + 2]
      dead[#dead + 1], dead[#dead + 2] = now, h.id
      held[#held + 1], held[#held + 2] = h.id, text_of(h)
    end
  end
  rem(RUN, ids)
  add(DEAD, dead)
  hold(held)
  return out
end
return guard(main)
