-- Pauses series, of which no moment makes a job then, or ends their pause.
--
-- KIND    batch, ids may repeat, needs memory
-- ROLE    producer
-- USES    answer attempts record rows
-- KEYS    due none
-- READS   due jobs attempts
-- WRITES  attempts
-- ARGV    database
--         then per job: id, paused
--           paused        1: it is from now on; 0: it is not
-- RETURNS now_us
--         then per job: row (no body; as it is now) | ENOENT | EINVAL
--           ENOENT        no such job waits
--           EINVAL        it is no series
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1) a job, and its bytes

-- The attempt of a series that is paused, or not: one that has not begun has none.
local function paused_attempt(text, tries, due_ms, is_paused)
  local attempt = attempt_read(text) or { token = '0', holder = '-', try = 0, claimed_us = '0',
    due_ms = due_ms, reason = '', tries = tries }
  local more = string.gsub(attempt.more or 'n=0', ',z=1', '')
  attempt.more = more .. (is_paused and ',z=1' or '')
  return attempt_text(attempt)
end

local function main()
  local out, seen, attempts, bytes = { now_us }, {}, {}, 0

  for at = 2, #ARGV, 2 do
    if bytes > BYTES then break end
    local id, is_paused = ARGV[at], ARGV[at + 1] == '1'
    local score, record = call('ZSCORE', DUE, id), call('HGET', JOBS, id)
    local len, tries, _, _, attributes = record_header(record or '')
    bytes = bytes + #(record or '')

    local reply
    if not score or not record then
      reply = 'ENOENT'
    elseif not attributes or not attributes.S then
      reply = 'EINVAL'
    else
      reply = job_row(id, DUE, time_of(score), string.sub(record, 1, len))
      local text = paused_attempt(seen[id] or reply[4], tries, reply[3], is_paused)
      attempts[#attempts + 1], attempts[#attempts + 2], seen[id], reply[4] = id, text, text, text
    end
    out[#out + 1] = reply
  end

  attempts_put(attempts)
  return out
end
return answer(main)
