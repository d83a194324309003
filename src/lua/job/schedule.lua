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
local function main()
  local ids = {}
  for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
  local stored = call('HMGET', JOBS, unpack(ids))
  local _, first_due = next_due()

  local out, dues, records, moved, replaced = { now_us }, {}, {}, {}, {}
  for at = 2, #ARGV, 4 do
    local id, due, conflict, record = unpack(ARGV, at, at + 3)
    local due_ms, old, set, score = due_of(due), stored[#out], nil, nil
    if old then set, score = set_of(id) end

    local reply = due_ms
    if due_ms > now_ms + TEN_YEARS then
      reply = 'EINVAL'
    elseif set and conflict == '0' then
      reply = 'EEXIST'
    elseif set and conflict == '1' then
      local len = record_header(old)
      reply = len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
    elseif set and is_running(set, score) then
      reply = 'EBUSY'
    else
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      records[#records + 1], records[#records + 2] = id, record
      if set then replaced[#replaced + 1] = id end
      if set and set ~= DUE then moved[#moved + 1] = { set, { id } } end
    end
    out[#out + 1] = reply
  end

  if #replaced > 0 then check_hash(ATTEMPTS) end
  set_add(DUE, dues)
  jobs_put(records)
  for _, from in ipairs(moved) do set_remove(from[1], from[2]) end
  attempts_delete(replaced)
  for i = 1, #dues, 2 do trigger_set(dues[i + 1], dues[i], #replaced == 0) end
  notice_due(first_due, dues)
  return out
end
return answer(main)
