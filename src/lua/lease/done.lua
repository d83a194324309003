-- Ends jobs that are done. One for which a reschedule asked while it ran waits again; one that asks
-- for it (attribute K) is kept.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts ends index jobs kept leases limits lives marks next reports sets types
-- KEYS    due none
-- READS   attempts run jobs next due index batches kept report errors
-- WRITES  index run kept jobs attempts report errors next batches due t ends notice
-- ARGV    database
--         holder
--         then per job: id, token
--           token         or 'TOKEN REPORT', what has come of the job: at most 65536 bytes; it is
--                         known as long as the job is
-- RETURNS now_us
--         then per job: 1 | due_ms (it waits again) | EGONE | EINVAL
--           EINVAL        the report is longer
--           fewer than asked: the records of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- A job whose record says more is done: appends its entries in the index, to left that of its
-- batch, which may end with it. Is it kept?
local function record_ends(id, attempt, report, entries, left)
  local record, own = call('HGET', JOBS, id), {}
  next_read(record)
  index_entries(own, id, record)
  for _, entry in ipairs(own) do
    local is_of_batch = string.byte(entry) == 98
    table.insert(is_of_batch and left or entries, entry)
  end
  if report and not attempt_more(attempt, 'o') then attempt.more = report_noted(attempt.more) end
  return kept_end(id, record, ENDED_DONE, attempt)
end

local function main()
  local ids = {}
  check_hash(JOBS)
  for at = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local texts = call('HMGET', ATTEMPTS, MET, unpack(ids))
  local ends = call('ZMSCORE', RUN, unpack(ids))

  local out, ended, over, done, entries = { now_us }, {}, {}, {}, {}
  local dues, priorities, reports, left = {}, {}, {}, {}
  for at = 3, #ARGV, 2 do
    if next_bytes > BYTES then break end
    local i = #out
    local id, text = ids[i], texts[i + 1]
    local token, report = token_split(ARGV[at + 1])
    if #(report or '') > REPORT_MAX then
      out[i + 1] = 'EINVAL'
    elseif ends[i] and is_held(text, token) then
      local attempt = string.byte(text) == 50 and attempt_read(text)
      local due_ms = attempt and mark_due(attempt)
      local reads = attempt and not due_ms and attempt_more(attempt, 'x')
      life_ends(id, attempt)
      out[i + 1], ended[#ended + 1] = due_ms or 1, id
      if reads and record_ends(id, attempt, report, entries, left) then
        if report then reports[#reports + 1], reports[#reports + 2] = id, report end
      else
        over[#over + 1] = id
        if not due_ms then done[#done + 1] = id end
      end
      if due_ms then marked_waits(id, attempt, due_ms, dues, priorities) end
    else
      out[i + 1] = 'EGONE'
    end
  end

  if #dues > 0 then check_zset(DUE) end
  report_check(reports)
  index_check(left)
  index_check(next_entries)
  kept_check()
  lives_check()
  index_remove(entries)
  set_remove(RUN, ended)
  kept_put()
  local is_met = texts[1]
  local tells = limits_leave(is_met, ended, over)
  jobs_delete(done)
  attempts_delete(over)
  report_put(reports)
  lives_leave()
  next_leave()
  index_remove(left)
  wait_again(dues, priorities)
  ends_tell()
  limits_tell(tells)
  return out
end
return answer(main)
