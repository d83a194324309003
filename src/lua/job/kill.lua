-- Moves jobs that wait to dead, so that they do not run.
--
-- KIND    batch
-- ROLE    producer
-- USES    answer kills next record rows sets types
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

local function main()
  local out, bytes = { now_us }, 0
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
      local len = record_header(record)
      reply = job_row(id, set, score, string.sub(record, 1, len or 0))
      if set ~= DEAD then
        local job = { id = id, set = set, score = score, record = record, before = before }
        reply[2], reply[3], reply[4] = DIED, now_ms, job_is_killed(job, reply[4], reason)
      end
    end
    out[#out + 1] = reply
  end

  kills_put()
  return out
end
return answer(main)
