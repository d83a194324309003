-- Moves jobs that wait to dead, so that they do not run.
--
-- KIND    batch
-- ROLE    producer
-- USES    answer attempts ends index lives marks next record rows sets triggers types unique
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors
-- WRITES  due run dead attempts report errors t jobs next index batches ends notice
-- ARGV    database
--         then per job: id, reason
-- RETURNS now_us
--         then per job: row (dead, no body; as it was, if it was dead before) | ENOENT | EBUSY
--           | EENDED
--           EENDED        it has ended, and is kept
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job

-- The last attempt of a job, with the reason why it was killed; its try is 0 if it has not run. An
-- unreadable one stays as it is: it is of a newer version. begins: what follows the run has begun.
local function killed_attempt(id, text, tries, due_ms, reason, begins)
  local attempt = attempt_read(text)
  if text ~= '' and not attempt then return text end

  attempt = attempt or { token = '0', holder = '-', try = 0, claimed_us = '0', due_ms = due_ms }
  attempt.tries = attempt.tries or tries or 10
  attempt.reason = reason
  mark_set(attempt, nil)
  if begins then life_begins(id, attempt) end
  return attempt_text(attempt)
end

local function main()
  local out, bytes = { now_us }, 0
  local leaves, triggers, dead, attempts = { [DUE] = {}, [RUN] = {} }, {}, {}, {}
  local entries = {}
  check_zset(DEAD)

  for at = 2, #ARGV, 2 do
    if bytes > BYTES then break end
    local id, reason = ARGV[at], ARGV[at + 1]
    local set, score = set_of(id)
    local record, before
    if set then record, before = record_now(id, set, score) end
    bytes = bytes + #(record or '') + #(before or '')

    local reply
    if not record or is_past(set, score) then
      reply = 'ENOENT'
    elseif set == KEPT then
      reply = 'EENDED'
    elseif is_running(set, score) then
      reply = 'EBUSY'
    else
      local len, tries, _, _, attributes = record_header(record)
      reply = job_row(id, set, score, string.sub(record, 1, len or 0))
      if set ~= DEAD then
        reply[2], reply[3] = DIED, now_ms
        reply[4] = killed_attempt(id, reply[4], tries, score, reason, before)
        table.insert(leaves[set], id)
        dead[#dead + 1], dead[#dead + 2] = now_ms, id
        attempts[#attempts + 1], attempts[#attempts + 2] = id, reply[4]
        triggers[#triggers + 1] = TRIGGER .. id
        key_entry(entries, id, record)
        death_note(id, attributes)
        if before then next_take(id, before, record, nil, 0) end
      end
    end
    out[#out + 1] = reply
  end

  index_check(entries)
  index_check(next_entries)
  lives_check()
  set_remove(DUE, leaves[DUE])
  set_remove(RUN, leaves[RUN])
  set_add(DEAD, dead)
  attempts_put(attempts)
  lives_leave()
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  next_leave()
  index_remove(entries)
  ends_tell()
  return out
end
return answer(main)
