-- Moves jobs to dead at once; or does what was asked while they ran.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts errors leases limits marks next sets types
-- KEYS    due none
-- READS   attempts run dead kept jobs next due index batches report errors
-- WRITES  run dead kept jobs attempts report errors next index batches due t ends notice
-- ARGV    database
--         holder
--         then per job: id, token, reason
-- RETURNS now_us
--         then per job: 1 (it is dead) | due_ms (it waits again) | -1 (it is cancelled) | EGONE
--           fewer than asked: the records of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dues, priorities, dead, attempts = { now_us }, {}, {}, {}, {}, {}
  check_zset(DEAD)

  local held, is_met = attempts_held(3)
  for at = 3, #ARGV, 3 do
    if next_bytes > BYTES then break end
    local id, _, reason = unpack(ARGV, at, at + 2)
    local attempt = held[#out]
    local marked = attempt and marked_end(id, attempt, dues, priorities)
    out[#out + 1] = marked or (attempt and 1 or 'EGONE')
    if attempt then ids[#ids + 1] = id end
    if attempt and not marked then
      attempt.reason = reason
      dead[#dead + 1], dead[#dead + 2] = now_ms, id
      marked_dies(id, attempt)
      failure_keep(id, attempt, now_ms)
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
  end

  marked_check()
  set_remove(RUN, ids)
  set_add(DEAD, dead)
  local lost = {}
  local tells = limits_leave(is_met, ids, lost)
  marked_leave(attempts, lost)
  wait_again(dues, priorities)
  limits_tell(tells)
  return out
end
return answer(main)
