-- Stores new jobs, sets their triggers, and notifies the listeners.
--
-- KIND    batch
-- ROLE    producer
-- USES    answer attempts due jobs notice record rows sets triggers types
-- KEYS    due
-- READS   due run dead jobs attempts
-- WRITES  due jobs run dead attempts t notice
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
-- What a job is answered whose id is stored; nil: it replaces the old one, which is noted in
-- replaced: set, id, set, id...
local function answer_stored(id, old, conflict, replaced)
  local set, score = set_of(id)
  if not set then return nil end

  if conflict == '0' then return 'EEXIST' end
  if conflict == '1' then
    local len = record_header(old)
    return len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
  end
  if is_running(set, score) then return 'EBUSY' end

  replaced[#replaced + 1], replaced[#replaced + 2] = set, id
  return nil
end

local function replaced_remove(replaced)
  local ids = {}
  for i = 1, #replaced, 2 do
    local set, id = replaced[i], replaced[i + 1]
    if set ~= DUE then set_remove(set, { id }) end
    ids[#ids + 1] = id
  end
  attempts_delete(ids)
end

local function main()
  local ids = {}
  for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
  local stored = call('HMGET', JOBS, unpack(ids))
  local _, first_due = next_due()

  local out, dues, records, replaced = { now_us }, {}, {}, {}
  for at = 2, #ARGV, 4 do
    local id, due, conflict, record = unpack(ARGV, at, at + 3)
    local due_ms, old = due_of(due), stored[#out]

    local reply
    if due_ms > now_ms + TEN_YEARS then
      reply = 'EINVAL'
    elseif old then
      reply = answer_stored(id, old, conflict, replaced)
    end
    if not reply then
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      records[#records + 1], records[#records + 2] = id, record
    end
    out[#out + 1] = reply or due_ms
  end

  local fresh = #replaced == 0
  if not fresh then check_hash(ATTEMPTS) end
  set_add(DUE, dues)
  jobs_put(records)
  if not fresh then replaced_remove(replaced) end
  for i = 1, #dues, 2 do
    local due_ms, id = dues[i], dues[i + 1]
    trigger_set(id, due_ms, fresh)
  end
  notice_due(first_due, dues)
  return out
end
return answer(main)
