-- Makes jobs that wait or are dead due at another time; and asks for one that runs that it wait
-- again after its run, if that is wanted. A dead job, and one that ran, has all its tries; and a
-- dead one holds its unique key, unless another job does. Of a series (attribute S) the next moment
-- is another, and with it all later ones.
--
-- KIND    batch, ids may repeat, needs memory
-- ROLE    producer
-- USES    answer attempts due index lives marks moves next record rows sets unique
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors
-- WRITES  index due run dead attempts report errors t jobs next batches notice
-- ARGV    database
--         then per job: id, due, running
--           due           '+ms' from now, or ms
--           running       1: one that runs is due then after its run; 0: it is EBUSY
-- RETURNS now_us
--         then per job: row (no body; running: it is asked) | ENOENT | EEXIST | EBUSY | EINVAL
--           | EENDED
--           EEXIST        it is dead, and another job holds its key
--           EINVAL        due in over ten years; a series: due behind its end
--           EENDED        it has ended, and is kept
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- The answer for a job that runs.
local function ask_again(id, score, header, due_ms)
  local row = job_row(id, RUN, score, header)
  local attempt = mark_ask(id, row[4], 'd=' .. decimal(due_ms))
  if not attempt then return 'EBUSY' end

  row[4] = attempt_text(attempt)
  return row
end

-- Is it dead, or over, as something was asked while it ran? Then its tries start over; but a series
-- goes on counting.
local function is_over(row)
  local attempt = attempt_read(row[4])
  if attempt_counts(attempt) then return false end
  return row[2] == DIED or attempt and is_marked(attempt)
end

local function main()
  local out, dues, moved, revived, bytes = { now_us }, {}, {}, {}, 0
  local priorities, entries, taken = {}, {}, {}
  local first_due = first_to_come()

  for at = 2, #ARGV, 3 do
    if bytes > BYTES then break end
    local id, due_ms = ARGV[at], due_of(ARGV[at + 1])
    local set, score = set_of(id)
    local record, before
    if set then record, before = record_now(id, set, score) end
    local header = string.sub(record or '', 1, record_header(record or '') or 0)
    local runs = is_running(set, score)
    bytes = bytes + #(record or '') + #(before or '')

    local reply
    if not record or is_past(set, score) then
      reply = 'ENOENT'
    elseif set == KEPT then
      reply = 'EENDED'
    elseif runs and ARGV[at + 2] ~= '1' then
      reply = 'EBUSY'
    elseif due_ms > now_ms + TEN_YEARS or record_is_over(record, due_ms) then
      reply = 'EINVAL'
    elseif runs then
      reply = ask_again(id, score, header, due_ms)
    else
      reply = job_row(id, set, score, header)
      if reply[2] == DIED and not key_take(entries, taken, id, record, next_entries) then
        reply = 'EEXIST'
      else
        local text = ''
        if before then text = next_take(id, before, record, attempt_read(reply[4]), due_ms) end
        if is_over(reply) then
          life_ends_by(id, reply[4])
          revived[#revived + 1], reply[4] = id, text
        end
        reply[2], reply[3] = WAITING, due_ms
        dues[#dues + 1], dues[#dues + 2], priorities[id] = due_ms, id, record_priority(record)
        if set ~= DUE then moved[#moved + 1] = { set, { id } } end
      end
    end
    out[#out + 1] = reply
  end

  next_entries_stay(entries)
  index_check(entries)
  index_check(next_entries)
  lives_check()
  index_add(entries)
  jobs_wait(first_due, dues, moved, revived, priorities)
  return out
end
return answer(main)
