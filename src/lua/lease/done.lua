-- Ends jobs that are done. One for which a reschedule asked while it ran waits again; one that asks
-- for it (attribute K) is kept.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts ends index jobs kept leases limits lives marks next reports sets types
-- SELDOM  run_ends runs_apart runs_are_enough runs_begin kept_put runs_leave token_split
--         limits_tell
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

-- What else changes where the attempts of jobs say more: the entries that leave the index, those of
-- batches last; the reports of jobs that are kept; and who waits again: due time, id..., and the
-- priorities by id.
local ends = { entries = {}, left = {}, reports = {}, dues = {}, priorities = {} }

-- A job whose record says more is done. Is it kept?
local function record_ends(id, attempt, report)
  local record, own = call('HGET', JOBS, id), {}
  next_read(record)
  index_entries(own, id, record)
  for _, entry in ipairs(own) do
    local is_of_batch = string.byte(entry) == 98
    table.insert(is_of_batch and ends.left or ends.entries, entry)
  end
  if report and not attempt_more(attempt, 'o') then attempt.more = report_noted(attempt.more) end
  return kept_end(id, record, ENDED_DONE, attempt)
end

-- The ids of the jobs whose attempts, and those whose records go, apart from those whose runs end.
local function runs_apart(ended)
  local over, done = {}, {}
  for i, id in ipairs(ended) do over[i], done[i] = id, id end
  return over, done
end

-- Of a job whose attempt says more: what is answered.
local function run_ends(id, text, report, over, done)
  local attempt = attempt_read(text)
  local due_ms = attempt and mark_due(attempt)
  local reads = attempt and not due_ms and attempt_more(attempt, 'x')
  life_ends(id, attempt)

  if reads and record_ends(id, attempt, report) then
    local n = #ends.reports
    if report then ends.reports[n + 1], ends.reports[n + 2] = id, report end
  else
    over[#over + 1] = id
    if not due_ms then done[#done + 1] = id end
  end
  if due_ms then
    marked_waits(id, attempt, due_ms, ends.dues, ends.priorities)
  end
  return due_ms or 1
end

-- Were the records that such jobs have enough for one call?
local function runs_are_enough() return next_bytes > BYTES end

-- Checks first, and then removes, for a Redis that is out of memory.
local function runs_begin()
  if #ends.dues > 0 then check_zset(DUE) end
  report_check(ends.reports)
  index_check(ends.left)
  index_check(next_entries)
  kept_check()
  lives_check()
  index_remove(ends.entries)
end

-- When records and attempts are gone.
local function runs_leave()
  report_put(ends.reports)
  lives_leave()
  next_leave()
  index_remove(ends.left)
  if #ends.dues > 0 then
    wait_again(ends.dues, ends.priorities)
  end
  ends_tell()
end

-- A token, and the report that stands behind it. nil: it is longer than may be.
local function token_split(text, blank)
  local report = string.sub(text, blank + 1)
  if #report > REPORT_MAX then return nil end
  return string.sub(text, 1, blank - 1), report
end

local function main()
  local ids = {}
  check_hash(JOBS)
  for at = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local texts = call('HMGET', ATTEMPTS, MET, unpack(ids))
  local scores = call('ZMSCORE', RUN, unpack(ids))

  local out, ended, says_more = { now_us }, {}, false
  local over, done = ended, ended
  for i = 1, #ids do
    if says_more and runs_are_enough() then break end

    local id, text = ids[i], scores[i] and texts[i + 1] or ''
    local token, report = ARGV[2 * i + 2] or '', nil
    local blank = string.find(token, ' ', 1, true)
    if blank then token, report = token_split(token, blank) end
    local form = token and is_held(text, token) and string.byte(text)
    if form == 49 then
      out[i + 1], ended[#ended + 1] = 1, id
      if says_more then over[#over + 1], done[#done + 1] = id, id end
    elseif form == 50 then
      if not says_more then over, done = runs_apart(ended) end
      out[i + 1], ended[#ended + 1] = run_ends(id, text, report, over, done), id
      says_more = true
    else
      out[i + 1] = token and 'EGONE' or 'EINVAL'
    end
  end

  if says_more then runs_begin() end
  set_remove(RUN, ended)
  if says_more then kept_put() end
  jobs_delete(done)
  local is_met = texts[1]
  local tells = limits_leave(is_met, ended, over)
  attempts_delete(over)
  if says_more then runs_leave() end
  if tells then limits_tell(tells) end
  return out
end
return answer(main)
