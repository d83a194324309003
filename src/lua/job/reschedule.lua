-- Makes jobs that wait or are dead due at another time. A dead job waits again, with all its tries.
--
-- KIND    batch, ids may repeat, needs memory
-- ROLE    producer
-- USES    answer due moves record rows sets
-- KEYS    due none
-- READS   due run dead jobs attempts
-- WRITES  due run dead attempts t notice
-- ARGV    database
--         then per job: id, due
--           due           '+ms' from now, or ms
-- RETURNS now_us
--         then per job: row (no body) | ENOENT | EBUSY | EINVAL
--           EINVAL        due in over ten years
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, dues, moved, revived, bytes = { now_us }, {}, {}, {}, 0
  local priorities = {}
  local first_due = first_to_come()

  for at = 2, #ARGV, 2 do
    if bytes > BYTES then break end
    local id, due_ms = ARGV[at], due_of(ARGV[at + 1])
    local set, score = set_of(id)
    local record = set and call('HGET', JOBS, id)

    local reply
    if not record then
      reply = 'ENOENT'
    elseif is_running(set, score) then
      reply = 'EBUSY'
    elseif due_ms > now_ms + TEN_YEARS then
      reply = 'EINVAL'
    else
      bytes = bytes + #record
      reply = job_row(id, set, score, string.sub(record, 1, record_header(record) or 0))
      if reply[2] == DIED then revived[#revived + 1], reply[4] = id, '' end
      reply[2], reply[3] = WAITING, due_ms
      dues[#dues + 1], dues[#dues + 2], priorities[id] = due_ms, id, record_priority(record)
      if set ~= DUE then moved[#moved + 1] = { set, { id } } end
    end
    out[#out + 1] = reply
  end

  jobs_wait(first_due, dues, moved, revived, priorities)
  return out
end
return answer(main)
