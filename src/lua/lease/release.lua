-- Gives back jobs whose run did not begin: due as before, their try not counted; or does what was
-- asked meanwhile.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts due leases limits marks next notice sets triggers types unique
-- KEYS    due none
-- READS   attempts run due dead kept jobs next index batches report errors
-- WRITES  run due kept jobs attempts report errors next index batches t ends notice
-- ARGV    database
--         holder
--         then per job: id, token
-- RETURNS now_us
--         then per job: 1 | due_ms (it waits until then) | -1 (it is cancelled) | EGONE
--           fewer than asked: the records of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, dues, again, priorities, attempts = { now_us }, {}, {}, {}, {}, {}

  local held, is_met = attempts_held(2)
  for at = 3, #ARGV, 2 do
    if next_bytes > BYTES then break end
    local id, attempt = ARGV[at], held[#out]
    local marked = attempt and marked_end(id, attempt, again, priorities)
    if attempt and not marked and key_is_lost(id, attempt) then attempt = nil end
    out[#out + 1] = marked or (attempt and 1 or 'EGONE')
    if attempt then ids[#ids + 1] = id end
    if attempt and not marked then
      attempt.try = attempt.try - 1
      dues[#dues + 1], dues[#dues + 2] = attempt.due_ms, id
      priorities[id] = attempt_priority(attempt)
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
  end

  for _, word in ipairs(again) do dues[#dues + 1] = word end
  check_zset(DUE)
  check_zset(RUN)
  check_zset(DEAD)
  marked_check()
  set_remove(RUN, ids)
  set_add(DUE, due_entries(dues, priorities))
  local lost = {}
  local tells = limits_leave(is_met, ids, lost)
  marked_leave(attempts, lost)
  triggers_set(again, true)
  notice_due(0, dues)
  limits_tell(tells)
  return out
end
return answer(main)
