-- Stores new jobs, sets their triggers, and notifies the listeners. A call whose unique key is held
-- is about the job that holds it.
--
-- KIND    batch, needs memory
-- ROLE    producer
-- USES    answer attempts due index jobs notice record rows sets triggers types unique
-- KEYS    due none
-- READS   due run dead jobs attempts index
-- WRITES  index due jobs run dead attempts t notice
-- ARGV    database
--         then per job: id, due, on_conflict, record
--           due           '+ms' from now, or ms
--           on_conflict   0 reject, 1 keep, 2 replace, 3 earlier, 4 later, 5 debounce; 5:ms, no
--                           later than that after the first such call
-- RETURNS now_us
--         then per job: due_ms (made, with this id) | row (no body; then 0: kept as it is, 1: made,
--           2: due at another time) | EEXIST | EBUSY | EINVAL | EDATA
--           EINVAL        due in over ten years
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

-- The attempt of a job that is debounced and has never run; it keeps until when.
local function debounced_attempt(record, due_ms, until_ms)
  local _, tries = record_header(record)
  return attempt_words('0 -', 0, tries or 10, '0', due_ms, '', 'w=' .. decimal(until_ms))
end

-- Of a job that waits: a row, if it is only to be due at another time; else when it is due with its
-- new record, and until when it is at the latest.
local function meet_waiting(out, job, how, most_ms, due_ms)
  local row, attempt = job.row, attempt_read(job.row[4])
  if how == '5' then
    local until_ms = debounced_until(row[4], most_ms)
    return nil, until_ms and math.max(now_ms, math.min(due_ms, until_ms)) or due_ms, until_ms
  end

  local moves = (how == '3' and due_ms < row[3]) or (how == '4' and due_ms > row[3])
  -- what was asked of a run whose lease ended is over, as the later of two counts
  if attempt and is_marked(attempt) then
    if not moves then due_ms = row[3] end
    out.replaced[#out.replaced + 1], row[4], moves = job.id, '', true
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

-- Of the jobs that are there: by place, what is answered, or when it is due and until when at the
-- latest; the ids of those that get another record; what leaves another set than due; and entries
-- of the index that may have to go.
local function meet_all(ids, stored, strays)
  local out = { answers = {}, dues = {}, limits = {}, is_there = {}, replaced = {}, moved = {},
    entries = strays, shifted = {}, priorities = {} }

  for i, id in ipairs(ids) do
    local old, due_ms = stored[i], due_of(ARGV[4 * i - 1])
    local how, most_ms = string.match(ARGV[4 * i], '^(%d):?(%d*)$')
    local set, score
    if old and due_ms <= now_ms + TEN_YEARS then set, score = set_of(id) end

    local is_kept = set and how == '1'
    if set and how == '0' then
      out.answers[i] = 'EEXIST'
    elseif is_kept then
      local len = record_header(old)
      out.answers[i] = len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
    elseif is_running(set, score) then
      out.answers[i] = 'EBUSY'
    elseif set and how ~= '2' then
      local job = { id = id, set = set, record = old }
      job.row = job_row(id, set, score, string.sub(old, 1, record_header(old) or 0))
      out.is_there[i] = job.row[2] == WAITING
      if out.is_there[i] then
        out.answers[i], out.dues[i], out.limits[i] = meet_waiting(out, job, how, most_ms, due_ms)
      end
    end

    if set and not out.answers[i] then
      out.replaced[#out.replaced + 1] = id
      if set ~= DUE then out.moved[#out.moved + 1] = { set, { id } } end
      index_entries(out.entries, id, old)
    end
  end
  return out
end

-- The entries that are in one list and not in the other.
local function entries_but(entries, others)
  local out, other = {}, {}
  for _, entry in ipairs(others) do other[entry] = true end
  for _, entry in ipairs(entries) do
    if not other[entry] then out[#out + 1] = entry end
  end
  return out
end

-- What is answered for a job that has this record from now on. created: 1, or 2 if it waited.
local function made_row(id, due_ms, text, record, created)
  local header = string.sub(record, 1, record_header(record) or 0)
  return { id, WAITING, due_ms, text, header, created }
end

local function main()
  local ids, strays, has_more = {}, nil, false
  for at = 2, #ARGV, 4 do
    ids[#ids + 1] = ARGV[at]
    has_more = has_more or string.byte(ARGV[at + 3]) == 2
  end
  if has_more then ids, strays = subjects() end

  local stored
  if #ids == 1 then
    stored = { call('HGET', JOBS, ids[1]) }
  else
    stored = call('HMGET', JOBS, unpack(ids))
  end
  local first_due = first_to_come()

  local out, dues, priorities, records, entries, attempts = { now_us }, {}, {}, {}, {}, {}
  local met
  if strays and #strays > 0 then met = meet_all(ids, stored, strays) end
  for i, id in ipairs(ids) do
    local at = 4 * i - 2
    local due, how, record = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local due_ms = due_of(due)
    if stored[i] and not met then met = meet_all(ids, stored, strays or {}) end

    local reply = met and met.answers[i]
    if due_ms > now_ms + TEN_YEARS then reply = 'EINVAL' end
    if not reply then
      local until_ms = met and met.limits[i]
      if not until_ms and string.byte(how, 2) == 58 then
        until_ms = now_ms + tonumber(string.sub(how, 3))
      end
      due_ms = met and met.dues[i] or (until_ms and math.min(due_ms, until_ms)) or due_ms

      local text = until_ms and debounced_attempt(record, due_ms, until_ms) or ''
      if until_ms then attempts[#attempts + 1], attempts[#attempts + 2] = id, text end
      local waited = met and met.is_there[i]
      reply = due_ms
      if waited or id ~= ARGV[at] then
        reply = made_row(id, due_ms, text, record, waited and 2 or 1)
      end
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      records[#records + 1], records[#records + 2] = id, record
      index_entries(entries, id, record)
      priorities[id] = record_priority(record)
    end
    out[i + 1] = reply
  end

  if met then
    for i = 1, #met.shifted do dues[#dues + 1] = met.shifted[i] end
    for id, priority in pairs(met.priorities) do priorities[id] = priority end
  end
  if met or #attempts > 0 then check_hash(ATTEMPTS) end
  index_check(entries)
  if met then index_check(met.entries) end
  index_add(entries)
  set_add(DUE, due_entries(dues, priorities))
  jobs_put(records)
  if met then
    for _, from in ipairs(met.moved) do
      local set, id = from[1], from[2]
      set_remove(set, id)
    end
    attempts_delete(met.replaced)
    if #met.entries > 0 then index_remove(entries_but(met.entries, entries)) end
  end
  attempts_put(attempts)
  for i = 1, #dues, 2 do
    local due_ms, id, fresh = dues[i], dues[i + 1], not met
    trigger_set(id, due_ms, fresh)
  end
  notice_due(first_due, dues)
  return out
end
return answer(main)
