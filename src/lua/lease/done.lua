-- Ends jobs that are done. One for which a reschedule asked while it ran waits again.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts index jobs leases limits marks next reports sets types
-- KEYS    due none
-- READS   attempts run jobs next due index report
-- WRITES  index run jobs attempts report next due t notice
-- ARGV    database
--         holder
--         then per job: id, token
--           token         or 'TOKEN REPORT', what has come of the job: at most 65536 bytes
-- RETURNS now_us
--         then per job: 1 | due_ms (it waits again) | EGONE | EINVAL
--           EINVAL        the report is longer
--           fewer than asked: the records of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local ids = {}
  check_hash(JOBS)
  for at = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local texts = call('HMGET', ATTEMPTS, MET, unpack(ids))
  local ends = call('ZMSCORE', RUN, unpack(ids))

  local out, ended, done, tagged, dues, priorities = { now_us }, {}, {}, {}, {}, {}
  for at = 3, #ARGV, 2 do
    if next_bytes > BYTES then break end
    local i = #out
    local text = texts[i + 1]
    local token, report = token_split(ARGV[at + 1])
    if #(report or '') > REPORT_MAX then
      out[i + 1] = 'EINVAL'
    elseif ends[i] and is_held(text, token) then
      local attempt = string.byte(text) == 50 and attempt_read(text)
      local due_ms = attempt and mark_due(attempt)
      report_ends(ids[i], attempt)
      out[i + 1], ended[#ended + 1] = due_ms or 1, ids[i]
      if due_ms then
        marked_waits(ids[i], attempt, due_ms, dues, priorities)
      else
        done[#done + 1] = ids[i]
        if attempt and attempt_more(attempt, 'x') then tagged[#tagged + 1] = ids[i] end
      end
    else
      out[i + 1] = 'EGONE'
    end
  end

  if #dues > 0 then check_zset(DUE) end
  report_check()
  index_check(next_entries)
  if #tagged > 0 then index_leave(tagged) end
  set_remove(RUN, ended)
  local is_met = texts[1]
  local tells = limits_leave(is_met, ended, ended)
  jobs_delete(done)
  attempts_delete(ended)
  report_leave()
  next_leave()
  wait_again(dues, priorities)
  limits_tell(tells)
  return out
end
return answer(main)
