-- Repairs jobs with a defect. Nothing is thrown away: a job that cannot run again becomes dead,
-- with a reason that says what was found. Of several sets a job stays in the one that loses
-- nothing: that of a live lease, else the one from which it runs again. Entries of the index are
-- made as the records say. A record that waits for the end of a run is that of its job, if the job
-- does not run; and goes, if the job is gone, or runs and is not to wait again. A report goes of
-- which no attempt speaks, and an entry of errors if the job is gone, or has none. A group says how
-- many parts it has. A batch that is closed and has no job left ends.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts batches defects due groups index jobs lives marks next notice record sets
--         triggers types unique
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors p
-- WRITES  index t jobs attempts report errors next dead due run kept batches notice
-- ARGV    database
--         then per job: id
--           id            or the name of a batch, or an entry of the index, which has a space
-- RETURNS now_us
--         then per job: what was repaired, as check names it; '': nothing, or it is gone
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local DIES = {
  none = 'the record was in none of the sets due, run, dead, kept',
  record = 'the job was in a set, and its record was missing',
  attempt = 'only the attempt of the job was left',
}

-- The attempt of a job that dies of its defect: its entry for the hash. An unreadable one stays as
-- it is: it is of a newer version.
local function last_attempt(id, record, what)
  local text = call('HGET', ATTEMPTS, id)
  local attempt = attempt_read(text)
  if text and not attempt then return {} end

  if not attempt then
    local _, tries = record_header(record or '')
    attempt = {
      try = 0,
      tries = tries or 10,
      token = '0',
      claimed_us = decimal(now_us),
      due_ms = now_ms,
      holder = '-',
      reason = '',
    }
  end
  local before = attempt.reason ~= '' and '; before: ' .. attempt.reason or ''
  mark_set(attempt, nil)
  attempt.reason = string.sub('lapse doctor: ' .. DIES[what] .. before, 1, 200)
  return { id, attempt_text(attempt) }
end

-- The record of a job that has none: it asks for nothing, but to keep the errors that there are.
local function record_left(id)
  local attempt = attempt_read(call('HGET', ATTEMPTS, id))
  return attempt and has_failures(attempt) and '\2\0\3e\0015' or '\1\0'
end

-- Adds the entries of a job that the index lacks to a list, and an entry without a job to another:
-- to left, if it is of a batch, which may end then. Returns what was found.
local function index_defect(id, missing, stray, left)
  local n_missing = #missing
  for _, entry in ipairs(index_missing(id, call('HGET', JOBS, id))) do
    missing[#missing + 1] = entry
  end
  if #missing > n_missing then return 'tag' end

  if not call('ZSCORE', INDEX, id) or not index_is_stray(id) then return nil end
  local is_of_batch = string.byte(id) == 98
  table.insert(is_of_batch and left or stray, id)
  return 'entry'
end

-- What becomes of a record in next. stays: the set in which the job is found, or put. Returns what
-- was found.
local function next_defect(id, what, sets, stays)
  local follows = call('HGET', NEXT, id)
  local waits = (what and stays ~= RUN) or (not what and (sets[DUE] or sets[DEAD]))
  if not follows or (not waits and next_stays(id)) then return nil end

  if waits then
    next_take(id, call('HGET', JOBS, id), follows, nil, 0)
  else
    next_forget(id)
  end
  return 'next'
end

-- An entry in report or errors leaves of which no attempt speaks. Returns what was found.
local function entry_defect(hash, id, what)
  if call('HEXISTS', hash, id) == 0 or entry_stays(hash, id) then return nil end
  life_forget(hash, id)
  return what
end

-- The attempt of a group says how many parts there are. Returns what was found.
local function parts_defect(id, attempts)
  local record = call('HGET', JOBS, id)
  if not parts_differ(id, record) then return nil end

  local parts, _, tries = parts_read(id), record_header(record)
  local counts = decimal(#parts) .. ':' .. decimal(#table.concat(parts))
  local attempt = attempt_read(call('HGET', ATTEMPTS, id)) or { token = '0', holder = '-', try = 0,
    tries = tries, claimed_us = '0', due_ms = now_ms, reason = '' }
  local rest = string.gsub(',' .. (attempt.more or 'n=0'), ',g=[^,]*', '')
  attempt.more = string.sub(rest, 2) .. ',g=' .. counts
  attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
  return 'parts'
end

local function main()
  local out, dues, dead, records, attempts, triggers = { now_us }, {}, {}, {}, {}, {}
  local leaves = { [DUE] = {}, [RUN] = {}, [DEAD] = {}, [KEPT] = {} }
  local missing, stray, left, priorities, batches = {}, {}, {}, {}, {}
  check_hash(ATTEMPTS)
  check_hash(NEXT)

  for at = 2, #ARGV do
    local id = ARGV[at]
    local what, sets = defect_of(id)
    local stays = (sets[RUN] and sets[RUN] > now_ms and RUN) or (sets[DUE] and DUE)
      or (sets[RUN] and RUN) or DEAD
    local index_what = index_defect(id, missing, stray, left)
    local report_what = entry_defect(REPORT, id, 'report')
    local failures_what = entry_defect(FAILURES, id, 'error')
    local parts_what = not what and parts_defect(id, attempts)

    if DIES[what] then
      local record = call('HGET', JOBS, id)
      key_entry(stray, id, record)
      key_entry(stray, id, call('HGET', NEXT, id))
      for _, text in ipairs(last_attempt(id, record, what)) do attempts[#attempts + 1] = text end
      stays, dead[#dead + 1], dead[#dead + 2] = DEAD, now_ms, id
      if not record then records[#records + 1], records[#records + 2] = id, record_left(id) end
    elseif what == 'holder' then
      stays, dues[#dues + 1], dues[#dues + 2] = DUE, now_ms, id
      priorities[id] = record_priority(call('HGET', NEXT, id) or call('HGET', JOBS, id))
    end
    local next_what = next_defect(id, what, sets, stays)
    local batch_what = batch_is_over(id) and 'batch' or nil
    if batch_what then batches[#batches + 1] = id end
    out[at] = what or index_what or next_what or report_what or failures_what or parts_what
      or batch_what or ''
    for _, set in ipairs(what and sets or {}) do
      if set ~= stays then table.insert(leaves[set], id) end
    end
    if what and stays ~= DUE then triggers[#triggers + 1] = TRIGGER .. id end
  end

  index_check(left)

  -- If it breaks off anywhere here, the next look finds what is left: a job in two sets, and never
  -- one in none that was in one.
  index_remove(stray)
  index_add(missing)
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  jobs_put(records)
  attempts_put(attempts)
  lives_leave()
  next_leave()
  set_add(DEAD, dead)
  set_add(DUE, due_entries(dues, priorities))
  for _, set in ipairs({ DEAD, DUE, RUN, KEPT }) do set_remove(set, leaves[set]) end
  index_remove(left)
  for _, name in ipairs(batches) do batch_ends(name) end
  notice_due(0, dues)
  return out
end
return answer(main)
