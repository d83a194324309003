-- Gives back jobs whose run did not begin: due as before, their try not counted.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts due leases notice sets types
-- KEYS    due none
-- READS   attempts run due dead
-- WRITES  run due attempts notice
-- ARGV    database
--         holder
--         then per job: id, token
-- RETURNS now_us
--         then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dues, priorities, attempts = { now_us }, {}, {}, {}, {}

  local held = attempts_held(2)
  for at = 3, #ARGV, 2 do
    local id, attempt = ARGV[at], held[#out]
    out[#out + 1] = attempt and 1 or 'EGONE'
    if attempt then
      attempt.try = attempt.try - 1
      ids[#ids + 1] = id
      dues[#dues + 1], dues[#dues + 2] = attempt.due_ms, id
      priorities[id] = attempt_priority(attempt)
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
  end

  check_zset(DUE)
  check_zset(RUN)
  check_zset(DEAD)
  set_remove(RUN, ids)
  set_add(DUE, due_entries(dues, priorities))
  attempts_put(attempts)
  notice_due(0, dues)
  return out
end
return answer(main)
