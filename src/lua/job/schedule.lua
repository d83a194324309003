-- Stores new jobs, sets their triggers, and notifies the listeners.
--
-- KIND    batch, needs memory
-- ROLE    producer
-- USES    answer attempts due index jobs notice record rows sets triggers types
-- KEYS    due none
-- READS   due run dead jobs attempts index
-- WRITES  index due jobs run dead attempts t notice
-- ARGV    database
--         then per job: id, due, on_conflict, record
--           due           '+ms' from now, or ms
--           on_conflict   0 reject, 1 keep, 2 replace
-- RETURNS now_us
--         then per job: due_ms (made) | row (kept, no body) | EEXIST | EBUSY | EINVAL | EDATA
--           EINVAL        due in over ten years
--           EDATA         kept, and cannot be read
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
-- Of the jobs whose ids are stored: by place, what is answered; the ids of those that are replaced;
-- of these what is in another set than due: set, id, set, id...; and their entries in the index.
local function conflicts(stored)
  local answers, replaced, moved, entries = {}, {}, {}, {}

  for at = 2, #ARGV, 4 do
    local id, due, conflict = unpack(ARGV, at, at + 2)
    local i = (at + 2) / 4
    local old, set, score = stored[i], nil, nil
    if old and due_of(due) <= now_ms + TEN_YEARS then set, score = set_of(id) end

    if set and conflict == '0' then
      answers[i] = 'EEXIST'
    elseif set and conflict == '1' then
      local len = record_header(old)
      answers[i] = len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
    elseif is_running(set, score) then
      answers[i] = 'EBUSY'
    elseif set then
      replaced[#replaced + 1] = id
      if set ~= DUE then moved[#moved + 1], moved[#moved + 2] = set, id end
      index_entries(entries, id, old)
    end
  end
  return answers, replaced, moved, entries
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

local function main()
  local stored
  if #ARGV == 5 then
    stored = { call('HGET', JOBS, ARGV[2]) }
  else
    local ids = {}
    for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
    stored = call('HMGET', JOBS, unpack(ids))
  end
  local first_due = first_to_come()

  local out, dues, priorities, records, entries = { now_us }, {}, {}, {}, {}
  local answers, replaced, moved, before
  for at = 2, #ARGV, 4 do
    local id, due, _, record = unpack(ARGV, at, at + 3)
    local i, due_ms = #out, due_of(due)
    if stored[i] and not answers then answers, replaced, moved, before = conflicts(stored) end

    local reply = answers and answers[i]
    if due_ms > now_ms + TEN_YEARS then reply = 'EINVAL' end
    if not reply then
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      records[#records + 1], records[#records + 2] = id, record
      index_entries(entries, id, record)
      priorities[id] = record_priority(record)
    end
    out[i + 1] = reply or due_ms
  end

  if replaced then check_hash(ATTEMPTS) end
  index_check(entries)
  if before then index_check(before) end
  index_add(entries)
  set_add(DUE, due_entries(dues, priorities))
  jobs_put(records)
  if replaced then
    for i = 1, #moved, 2 do
      local set, id = moved[i], { moved[i + 1] }
      set_remove(set, id)
    end
    attempts_delete(replaced)
    if #before > 0 then index_remove(entries_but(before, entries)) end
  end
  for i = 1, #dues, 2 do
    local due_ms, id, fresh = dues[i], dues[i + 1], not replaced
    trigger_set(id, due_ms, fresh)
  end
  notice_due(first_due, dues)
  return out
end
return answer(main)
