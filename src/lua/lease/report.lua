-- Keeps what the holders of jobs say of them, how far they are or what has come of them, in the
-- place of what was said before.
--
-- KIND    batch, needs memory
-- ROLE    listener
-- USES    answer attempts leases lives reports types
-- KEYS    due none
-- READS   attempts run report
-- WRITES  report attempts
-- ARGV    database
--         holder
--         then per job: id, token, report
--           report        any bytes, at most 65536
-- RETURNS now_us
--         then per job: 1 | EGONE | EINVAL
--           EINVAL        the report is longer
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1) a job, and its bytes
local function main()
  local out, reports, attempts = { now_us }, {}, {}
  check_hash(REPORT)

  local held = attempts_held(3)
  for at = 3, #ARGV, 3 do
    local id, _, report = unpack(ARGV, at, at + 2)
    local attempt, reply = held[#out], 1
    if #report > REPORT_MAX then
      reply = 'EINVAL'
    elseif not attempt then
      reply = 'EGONE'
    else
      reports[#reports + 1], reports[#reports + 2] = id, report
      if not attempt_more(attempt, 'o') then
        attempt.more = report_noted(attempt.more)
        attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
      end
    end
    out[#out + 1] = reply
  end

  report_put(reports)
  attempts_put(attempts)
  return out
end
return answer(main)
