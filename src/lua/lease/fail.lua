-- Moves jobs to dead at once.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts leases sets types
-- KEYS    due none
-- READS   attempts run dead
-- WRITES  run dead attempts
-- ARGV    database
--         holder
--         then per job: id, token, reason
-- RETURNS now_us
--         then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dead, attempts = { now_us }, {}, {}, {}
  check_zset(DEAD)

  local held = attempts_held(3)
  for at = 3, #ARGV, 3 do
    local id, _, reason = unpack(ARGV, at, at + 2)
    local attempt = held[#out]
    out[#out + 1] = attempt and 1 or 'EGONE'
    if attempt then
      ids[#ids + 1], attempt.reason = id, reason
      dead[#dead + 1], dead[#dead + 2] = now_ms, id
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
  end

  set_remove(RUN, ids)
  set_add(DEAD, dead)
  attempts_put(attempts)
  return out
end
return answer(main)
