-- Closes batches. A job whose id is the name of a batch is its own: from now on it waits until all
-- jobs of the batch have ended, in whatever way, and is due then; and at the latest when it was due
-- before. If all have ended, or there are none, it is due now.
--
-- KIND    batch, ids may repeat, needs memory
-- ROLE    producer
-- USES    answer attempts batches due notice record rows sets triggers types
-- KEYS    due none
-- READS   due run dead kept jobs attempts index batches
-- WRITES  batches attempts due t notice
-- ARGV    database
--         then per job: id
--           id            the name of the batch
-- RETURNS now_us
--         then per job: row (its own job; no body) | ENOENT | EBUSY | EINVAL | EENDED | EDATA
--           ENOENT        it has no job of its own: that is to be scheduled before
--           EBUSY         its own job has begun, or is dead
--           EINVAL        its own job is a series, or a group
--           EENDED        its own job has ended, and is kept
--           EDATA         its own job cannot be read
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- What keeps the job of this id from waiting for its batch; nil: nothing.
local function refusal_of(set, score, record, text)
  local attempt = attempt_read(text)
  local has_begun = attempt and attempt.token ~= '0'
  if not record or is_past(set, score) then return 'ENOENT' end
  if set == KEPT then return 'EENDED' end
  if set ~= DUE or has_begun or text ~= '' and not attempt then return 'EBUSY' end

  local len, _, _, _, attributes = record_header(record)
  if not len then return 'EDATA' end
  return attributes and (attributes.S or attributes.P) and 'EINVAL' or nil
end

-- The attempt of a job that waits for its batch. text: '' if it had none.
local function awaiting_attempt(record, text, due_ms)
  local _, tries = record_header(record)
  local priority = record_priority(record)
  local attempt = attempt_read(text) or { token = '0', holder = '-', try = 0, tries = tries,
    claimed_us = '0', due_ms = due_ms, reason = '' }
  local words = { attempt.more }
  if priority and not attempt_priority(attempt) then words[#words + 1] = 'q=' .. priority end
  words[#words + 1] = 'b=1'
  attempt.more = table.concat(words, ',')
  return attempt_text(attempt)
end

local function main()
  local out, bytes, first_due = { now_us }, 0, first_to_come()
  local attempts, counts, dues, priorities, ended = {}, {}, {}, {}, {}

  for at = 2, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[at]
    local set, score = set_of(id)
    local record = set and call('HGET', JOBS, id) or nil
    local header = string.sub(record or '', 1, record_header(record or '') or 0)
    local row = job_row(id, set, score, header)
    local reply = refusal_of(set, score, record, row[4])
    bytes = bytes + #(record or '')

    if not reply and not batch_is_awaited(attempt_read(row[4])) then
      if batch_is_empty(id) then
        row[3] = now_ms
        dues[#dues + 1], dues[#dues + 2] = now_ms, id
        priorities[id], ended[#ended + 1] = record_priority(record), id
      else
        row[4] = awaiting_attempt(record, row[4], score)
        attempts[#attempts + 1], attempts[#attempts + 2] = id, row[4]
        counts[#counts + 1] = id
        counts[#counts + 1] = decimal(batch_count(id) % CLOSED + CLOSED)
      end
    end
    out[at] = reply or row
  end

  check_hash(BATCHES)
  if #counts > 0 then write('HSET', BATCHES, unpack(counts)) end
  attempts_put(attempts)
  set_add(DUE, due_entries(dues, priorities))
  if #ended > 0 then write('HDEL', BATCHES, unpack(ended)) end
  triggers_set(dues, false)
  notice_due(first_due, dues)
  return out
end
return answer(main)
