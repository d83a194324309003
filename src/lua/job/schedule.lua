-- Stores new jobs, sets their triggers, and notifies the listeners. A call whose unique key is held
-- is about the job that holds it. Earlier, later and debounce let a job that runs wait again after
-- its run, with the new record. A series (attribute S) that replaces a series goes on counting.
--
-- KIND    batch, needs memory
-- ROLE    producer
-- USES    answer attempts created due groups index jobs lives marks next notice record rows sets
--         triggers types unique
-- SELDOM  subjects meet_all schedule_begin schedule_asked schedule_puts
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors
-- WRITES  index next due jobs t run dead kept attempts report errors p batches notice
-- ARGV    database
--         then per job: id, due, on_conflict, record
--           due           '+ms' from now, or ms; 'first': of a calendar the first of its
--                         moments that is to come
--           on_conflict   0 reject, 1 keep, 2 replace, 3 earlier, 4 later, 5 debounce; 5:ms, no
--                           later than that after the first such call
-- RETURNS now_us
--         then per job: due_ms (made, with this id) | row (no body; then 0: kept as it is, 1: made,
--           2: due at another time; running: that is its life after the run; made by a record with
--           the attribute m: always) | EEXIST | EBUSY | EINVAL | EDATA
--           EINVAL        due in over ten years; a series: due behind its end; a series or group:
--                         met by 3, 4 or 5; a group: gather makes it
--           EDATA         kept, and cannot be read
--           fewer than asked: the next one is about a job or a key that one before it is about, or
--           the records that were read were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- Which job each call is about: the one that holds its key, or that of its id; as many as can be
-- answered together. Also the entries of the keys that are wrong.
local function subjects()
  local ids, strays, seen, bytes = {}, {}, {}, 0

  for at = 2, #ARGV, 4 do
    local id, key = ARGV[at], record_key(ARGV[at + 3])
    if key then
      local holder, n_read = key_holder(key, strays)
      id, bytes = holder or id, bytes + n_read
    end
    if seen[id] or (key and seen[' ' .. key]) then break end

    ids[#ids + 1], seen[id] = id, true
    if key then seen[' ' .. key] = true end
    if bytes > BYTES then break end
  end
  return ids, strays
end

-- Until when a debounced job is due at the latest: what its first call has said, or this one.
local function debounced_until(text, most_ms)
  local attempt = attempt_read(text)
  local said = attempt and attempt.more and string.match(',' .. attempt.more, ',w=(%d+)')
  return tonumber(said) or (tonumber(most_ms) and now_ms + tonumber(most_ms))
end

-- When a job is due that is debounced, and until when it is at the latest.
local function debounced_due(text, most_ms, due_ms)
  local until_ms = debounced_until(text, most_ms)
  return until_ms and math.max(now_ms, math.min(due_ms, until_ms)) or due_ms, until_ms
end

-- Is a job that is due then to be due at this time instead?
local function is_better(how, due_ms, old_ms)
  return (how == '3' and due_ms < old_ms) or (how == '4' and due_ms > old_ms)
end

-- Of a job that runs: a row. What follows its run is like a job that waits.
local function meet_running(out, job, record, how, most_ms, due_ms)
  local row, attempt, until_ms = job.row, attempt_read(job.row[4]), nil
  if not attempt then return 'EBUSY' end

  local asked_ms, is_new = mark_due(attempt), true
  if how == '5' then
    due_ms, until_ms = debounced_due(row[4], most_ms, due_ms)
  elseif asked_ms then
    is_new = false
    if not is_better(how, due_ms, asked_ms) then
      row[6] = 0
      return row
    end
  end

  if is_new then
    local before = next_follows(attempt) and next_replace(job.id)
    record = created_put(record, before)
    mark_follow(attempt, due_ms, until_ms)
    out.nexts[#out.nexts + 1], out.nexts[#out.nexts + 2] = job.id, record
    for _, entry in ipairs(next_own(job.id, record)) do out.added[#out.added + 1] = entry end
  else
    mark_set(attempt, 'd=' .. decimal(due_ms))
  end
  row[4], row[6] = attempt_text(attempt), asked_ms and 2 or 1
  out.asked[#out.asked + 1], out.asked[#out.asked + 2] = job.id, row[4]
  return row
end

-- Of a job that waits: a row, if it is only to be due at another time; else when it is due with its
-- new record, and until when it is at the latest.
local function meet_waiting(out, job, how, most_ms, due_ms)
  local row, attempt = job.row, attempt_read(job.row[4])
  if how == '5' then return nil, debounced_due(row[4], most_ms, due_ms) end

  local moves = is_better(how, due_ms, row[3])
  -- what was asked of a run whose lease ended is over, as the later of two counts
  if attempt and is_marked(attempt) then
    if not moves then due_ms = row[3] end
    local text = ''
    if job.before then text = next_take(job.id, job.before, job.record, attempt, due_ms) end
    out.replaced[#out.replaced + 1], row[4], moves = job.id, text, true
  end
  row[6] = moves and 2 or 0
  if moves then
    local n = #out.shifted
    row[3], out.shifted[n + 1], out.shifted[n + 2] = due_ms, due_ms, job.id
    out.priorities[job.id] = record_priority(job.record)
    if job.set ~= DUE then out.moved[#out.moved + 1] = { job.set, { job.id } } end
  end
  return row
end

local function is_series(record)
  if string.byte(record) ~= 2 then return false end

  local _, _, _, _, attributes = record_header(record)
  return attributes ~= nil and attributes.S ~= nil
end

local function makes_jobs(record) return is_series(record) or record_gathers(record) end

-- What a series that replaces one goes on with: what has been, and whether it is paused; where the
-- new one is at, its own due time and rule say. nil: the old one has not begun.
local function counted_attempt(text)
  local attempt = attempt_read(text)
  if not attempt_counts(attempt) then return nil end

  attempt.reason, attempt.more = '', string.gsub(attempt.more, ',a=0', '')
  return attempt_text(attempt)
end

-- When a job is due. Of a calendar without a moment that is to come (true): when it looks for some.
local function due_asked(due, record)
  if due ~= 'first' then return due_of(due) end

  local _, _, _, _, attributes = record_header(record)
  local moments = attributes and string.match(attributes.S or '', ' c ([%d,]+)$')
  for ms in string.gmatch(moments or '', '%d+') do
    if tonumber(ms) > now_ms then return tonumber(ms) end
  end
  return now_ms + LOOK_MS, true
end

-- The attempt of a calendar without moments. text: that of the series which it replaces, or ''.
local function dry_attempt(text, record)
  local _, tries = record_header(record)
  local attempt = attempt_read(text) or { token = '0', holder = '-', try = 0, claimed_us = '0',
    reason = '', tries = tries, more = 'n=0' }
  attempt.due_ms, attempt.more = now_ms, attempt.more .. ',a=0'
  return attempt_text(attempt)
end

-- Of the jobs that are there: by place, what is answered, or when it is due and until when at the
-- latest, and the records of those that wait; the ids of those that get another record; what leaves
-- another set than due; entries of the index that may have to go; and of those that run the records
-- of next, with their entries, and the attempts.
local function meet_all(ids, stored, strays)
  local out = { answers = {}, dues = {}, limits = {}, is_there = {}, replaced = {}, moved = {},
    entries = strays, shifted = {}, priorities = {}, nexts = {}, added = {}, asked = {},
    series = {}, counts = {} }

  for i, id in ipairs(ids) do
    local old, due_ms, before = stored[i], due_asked(ARGV[4 * i - 1], ARGV[4 * i + 1]), nil
    local how, most_ms = string.match(ARGV[4 * i], '^(%d):?(%d*)$')
    local set, score
    local refused = record_is_over(ARGV[4 * i + 1], due_ms) or record_gathers(ARGV[4 * i + 1])
    if old and not refused and due_ms <= now_ms + TEN_YEARS then set, score = set_of(id) end
    if is_past(set, score) then how = '2' end
    local runs = is_running(set, score)
    if set == RUN and not runs then old, before = record_now(id, set, score) end

    local is_kept = set and how == '1'
    if set and how == '0' then
      out.answers[i] = 'EEXIST'
    elseif is_kept then
      local len = record_header(old)
      out.answers[i] = len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
    elseif runs and how == '2' then
      out.answers[i] = 'EBUSY'
    elseif set and how ~= '2' and (makes_jobs(old) or is_series(ARGV[4 * i + 1])) then
      out.answers[i] = 'EINVAL'
    elseif set and how ~= '2' then
      local job = { id = id, set = set, record = old, before = before }
      job.row = job_row(id, set, score, string.sub(old, 1, record_header(old) or 0))
      out.is_there[i] = job.row[2] == WAITING and old
      if runs then
        out.answers[i] = meet_running(out, job, ARGV[4 * i + 1], how, most_ms, due_ms)
      elseif out.is_there[i] then
        out.answers[i], out.dues[i], out.limits[i] = meet_waiting(out, job, how, most_ms, due_ms)
      end
    end

    if set and not out.answers[i] then
      out.replaced[#out.replaced + 1] = id
      out.series[id] = set ~= KEPT and is_series(old) and is_series(ARGV[4 * i + 1])
      if set ~= DUE then out.moved[#out.moved + 1] = { set, { id } } end
      index_entries(out.entries, id, old)
      parts_forget(id, old)
      if before then
        next_forget(id)
        index_entries(out.entries, id, before)
      end
    end
  end

  lives_end(out.replaced)
  for id, is_one in pairs(out.series) do
    if is_one then out.counts[id] = counted_attempt(call('HGET', ATTEMPTS, id)) end
  end
  return out
end

-- What is answered for a job that has this record from now on. created: 1, or 2 if it waited.
local function made_row(id, due_ms, text, record, created)
  local header = string.sub(record, 1, record_header(record) or 0)
  return { id, WAITING, due_ms, text, header, created }
end

-- What a call changes if one of its jobs asks for more, or is there already: entries of the index,
-- priorities by id, and attempts: id, text... met: what meet_all() says; nil: no job is there.
local function schedule_begin()
  return { entries = {}, priorities = {}, attempts = {}, met = nil }
end

-- Such a job: what is answered. dues, records: of those that are stored, as in main.
local function schedule_asked(more, i, id, dues, records)
  local due, how, record = ARGV[4 * i - 1], ARGV[4 * i], ARGV[4 * i + 1]
  local due_ms, is_dry = due_asked(due, record)
  local met, attempts = more.met, more.attempts
  local reply = met and met.answers[i]
  local is_over = record_is_over(record, due_ms)
  if is_over or record_gathers(record) or due_ms > now_ms + TEN_YEARS then reply = 'EINVAL' end
  if reply then return reply end

  local until_ms = met and met.limits[i]
  if not until_ms and string.byte(how, 2) == 58 then
    until_ms = now_ms + tonumber(string.sub(how, 3))
  end
  due_ms = met and met.dues[i] or (until_ms and math.min(due_ms, until_ms)) or due_ms

  local text = until_ms and debounced_attempt(record, due_ms, until_ms) or ''
  text = met and met.counts[id] or text
  if is_dry then text = dry_attempt(text, record) end
  if text ~= '' then attempts[#attempts + 1], attempts[#attempts + 2] = id, text end

  local waited = met and met.is_there[i]
  local stamped, is_stamped = created_put(record, waited)
  dues[#dues + 1], dues[#dues + 2] = due_ms, id
  records[#records + 1], records[#records + 2] = id, stamped
  index_entries(more.entries, id, stamped)
  more.priorities[id] = record_priority(stamped)
  if not waited and not is_stamped and id == ARGV[4 * i - 2] then return due_ms end
  return made_row(id, due_ms, text, stamped, waited and 2 or 1)
end

-- Checks first, and stores them.
local function schedule_puts(more, dues, records)
  local met, entries, attempts = more.met, more.entries, more.attempts
  if met then
    for i = 1, #met.shifted do dues[#dues + 1] = met.shifted[i] end
    for id, priority in pairs(met.priorities) do more.priorities[id] = priority end
    for _, entry in ipairs(met.added) do entries[#entries + 1] = entry end
    next_entries_stay(entries)
  end
  local has_read = met and #met.replaced > 0
  if not has_read and (met or #attempts > 0) then check_hash(ATTEMPTS) end
  index_check(entries)
  if met then index_check(met.entries) end
  index_check(next_entries)
  lives_check()
  if met and #met.nexts > 0 then check_hash(NEXT) end

  index_add(entries)
  if met then next_put(met.nexts) end
  local scores = due_entries(dues, more.priorities)
  set_add(DUE, scores)
  jobs_put(records)
  triggers_set(dues, not met) -- before a batch ends, whose own job may be one of these
  if met then
    for _, from in ipairs(met.moved) do
      local set, id = from[1], from[2]
      set_remove(set, id)
    end
    attempts_delete(met.replaced)
    lives_leave()
    attempts_put(met.asked)
    next_leave()
    if #met.entries > 0 then index_remove(entries_but(met.entries, entries)) end
    parts_leave()
  end
  attempts_put(attempts)
end

local function main()
  local ids, asks_more, strays = {}, false, nil
  for at = 2, #ARGV, 4 do
    ids[#ids + 1] = ARGV[at]
    asks_more = asks_more or string.byte(ARGV[at + 3]) == 2
  end
  if asks_more then ids, strays = subjects() end

  local stored
  if #ids == 1 then
    stored = { call('HGET', JOBS, ids[1]) }
  else
    stored = call('HMGET', JOBS, unpack(ids))
  end
  local first_due = first_to_come()

  local out, dues, records, more = { now_us }, {}, {}, nil
  for i = 1, #ids do
    local id, due, how = ids[i], ARGV[4 * i - 1], ARGV[4 * i]
    if asks_more or stored[i] or #how > 1 or due == 'first' then
      if not more then more = schedule_begin() end
      if not more.met and (stored[i] or strays and #strays > 0) then
        more.met = meet_all(ids, stored, strays or {})
      end
      out[i + 1] = schedule_asked(more, i, id, dues, records)
    else
      local due_ms = due_of(due)
      out[i + 1] = due_ms
      if due_ms > now_ms + TEN_YEARS then
        out[i + 1] = 'EINVAL'
      else
        dues[#dues + 1], dues[#dues + 2] = due_ms, id
        records[#records + 1], records[#records + 2] = id, ARGV[4 * i + 1]
      end
    end
  end

  if more then
    schedule_puts(more, dues, records)
  else
    set_add(DUE, dues)
    jobs_put(records)
    triggers_set(dues, true)
  end
  notice_due(first_due, dues)
  return out
end
return answer(main)
