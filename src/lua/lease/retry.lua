-- Puts jobs back to run again later. A job dies whose tries are used up, but by a snooze; or that
-- would be due later than any of its runs may begin (attribute R). Or does what was asked while
-- they ran.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts backoff due errors leases limits marks next notice sets triggers types
--         unique
-- SELDOM  retry_read marked_end key_is_lost attempt_priority marked_dies failure_keep marked_check
--         marked_leave limits_tell
-- KEYS    due none
-- READS   attempts run due dead kept jobs next index batches report errors
-- WRITES  run due dead kept jobs attempts report errors next index batches t ends notice
-- ARGV    database
--         holder
--         then per job: id, token, delay_ms, reason
--           delay_ms      '': the backoff of the job; '~ms': a snooze, whose try does not count
-- RETURNS now_us
--         then per job: due_ms (0: it is dead; -1: it is cancelled) | EGONE
--           fewer than asked: the records of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- The bytes of the records that were read of jobs whose attempts say more.
local function retry_read() return next_bytes end

local function main()
  local out, ids, dues, priorities, dead, attempts = { now_us }, {}, {}, {}, {}, {}
  local first_due, bytes, says_more = first_to_come(), 0, false
  check_zset(DEAD)

  local held, is_met = attempts_held(4)
  for at = 3, #ARGV, 4 do
    if bytes + (says_more and retry_read() or 0) > BYTES then break end
    local id, _, delay_ms, reason = unpack(ARGV, at, at + 3)
    local attempt, reply = held[#out], nil
    if attempt and attempt.more then
      says_more = true
      reply = marked_end(id, attempt, dues, priorities)
      if not reply and key_is_lost(id, attempt) then attempt = nil end
    end
    if attempt then ids[#ids + 1] = id end
    if attempt and not reply then
      local snoozes = string.byte(delay_ms) == 126
      attempt.reason = reason
      if snoozes then
        attempt.try, delay_ms = attempt.try - 1, string.sub(delay_ms, 2)
      end
      reply = 0
      if snoozes or not tries_used_up(attempt) then
        local wait_ms = tonumber(delay_ms)
        if not wait_ms then
          local record = call('HGET', JOBS, id)
          bytes, wait_ms = bytes + #(record or ''), backoff_of(record, attempt)
        end
        reply = now_ms + wait_ms
      end
      if reply == 0 or reply > attempt_last_ms(attempt) then
        dead[#dead + 1], dead[#dead + 2] = now_ms, id
        if attempt.more then marked_dies(id, attempt) end
        reply = 0
      else
        dues[#dues + 1], dues[#dues + 2], attempt.due_ms = reply, id, reply
        if attempt.more then priorities[id] = attempt_priority(attempt) end
      end
      if attempt.more and not snoozes then failure_keep(id, attempt, now_ms) end
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
    out[#out + 1] = reply or 'EGONE'
  end

  if says_more then marked_check() end
  set_remove(RUN, ids)
  local scores = due_entries(dues, priorities)
  set_add(DUE, scores)
  set_add(DEAD, dead)
  local lost = {}
  local tells = limits_leave(is_met, ids, lost)
  if says_more then
    marked_leave(attempts, lost)
  else
    attempts_put(attempts)
    attempts_delete(lost)
  end
  triggers_set(dues, true)
  notice_due(first_due, dues)
  if tells then limits_tell(tells) end
  return out
end
return answer(main)
