-- Puts jobs back to run again later; one whose tries are used up dies.
-- KEYS    1 due
-- ARGV    1 database, 2 holder; then per job: id, token, delay ms, reason
-- RETURNS now us; then per job: its due ms | 0 (dead) | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dues, dead, held = { now_us }, {}, {}, {}, {}
  local _, head = outlook()
  call('ZCARD', DEAD)
  for i, h in ipairs(ours(4)) do
    local due = now + tonumber(ARGV[i * 4 + 1])
    if not h then due = 'EGONE'
    else
      ids[#ids + 1], h.reason = h.id, ARGV[i * 4 + 2]
      if used_up(h) then
        dead[#dead + 1], dead[#dead + 2] = now, h.id
        due = 0
      else dues[#dues + 1], dues[#dues + 2], h.due = due, h.id, due end
      held[#held + 1], held[#held + 2] = h.id, text_of(h)
    end
    out[i + 1] = due
  end
  rem(RUN, ids)
  add(DUE, dues)
  add(DEAD, dead)
  hold(held)
  for i = 1, #dues, 2 do arm(dues[i + 1], dues[i], true) end
  wake(head, dues)
  return out
end
return guard(main)
