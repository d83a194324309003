-- Deletes jobs that wait or are dead; and asks jobs that run to stop, if that is wanted. One that
-- asks for it (attribute K) is kept, as one that was cancelled. With a series (attribute S), or a
-- group (P) and its parts, go the jobs of it that wait, and those that run when their run has
-- ended, in whatever way.
--
-- KIND    batch
-- ROLE    producer
-- USES    answer attempts descent kept marks next record removal rows sets
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors
-- WRITES  due run dead kept jobs attempts report errors next t p index batches ends notice
-- ARGV    database
--         then per job: id, running
--           running       1: one that runs, also of a series, is asked to stop; 0: it is not
-- RETURNS now_us
--         then per job: row (as it was, no body; running: it is asked; kept: it was cancelled)
--           | ENOENT | EBUSY | EENDED
--           EENDED        it was done, skipped or forwarded, and is kept
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job, and each of those that a series has made

-- The answer for a job that runs.
local function ask_to_stop(id, score, header)
  local row = job_row(id, RUN, score, header)
  local attempt = mark_ask(id, row[4], 'c=1')
  if not attempt then return 'EBUSY' end

  stop_tell(id, attempt)
  row[4] = attempt_text(attempt)
  return row
end

-- The answer for a job that is kept.
local function cancelled_before(id, score, header)
  local row = job_row(id, KEPT, score, header)
  return kept_how(row[4]) == ENDED_CANCELLED and row or 'EENDED'
end

local function main()
  local out, bytes = { now_us }, 0

  for at = 2, #ARGV, 2 do
    if bytes + next_bytes > BYTES then break end
    local id = ARGV[at]
    local set, score = set_of(id)
    local record, before = record_now(id, set, score)
    local len, _, _, _, attributes = record_header(record or '')
    local header = string.sub(record or '', 1, len or 0)
    bytes = bytes + #(record or '') + #(before or '')

    local reply
    if is_running(set, score) then
      reply = ARGV[at + 1] == '1' and record and ask_to_stop(id, score, header) or 'EBUSY'
    elseif (not set and not record) or is_past(set, score) then
      reply = 'ENOENT'
    elseif set == KEPT then
      reply = cancelled_before(id, score, header)
    else
      reply = job_row(id, set or DEAD, score or now_ms, header)
      job_goes({ id = id, set = set or DEAD, score = score, record = record, before = before },
        reply[4])
      if attributes and (attributes.S or attributes.P) then
        local jobs, n = series_jobs(id)
        descent_ends(jobs, ARGV[at + 1] == '1')
        bytes = bytes + n
      end
    end
    out[#out + 1] = reply
  end

  jobs_remove()
  stops_put()
  return out
end
return answer(main)
