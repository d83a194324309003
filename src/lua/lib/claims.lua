-- SPDX-License-Identifier: MIT
-- Gives due jobs to the holder ARGV[2], for ARGV[3] ms.
--
-- USES    attempts ends errors ids index jobs kept lives marks record reports series sets settings
--         tokens triggers types verdict

-- Before the first write: trips over keys of the wrong type. Returns the texts of the last token
-- and of the settings.
local function claim_check()
  check_zset(DUE)
  check_zset(RUN)
  check_zset(DEAD)
  local stored = call('MGET', SEQ, CONF)
  return stored
end

-- The attempt that a claim goes on from, and whether the job is to go instead. Of a job that waits
-- nothing is asked any more, unless an older version, which does not know of it, ended its run; and
-- it has not ended, unless such a version has made it of one that was kept.
local function attempt_before(id, text)
  local attempt = attempt_read(text)
  if not attempt then return NO_ATTEMPT end
  if not attempt.more then return attempt end
  if mark_due(attempt) or attempt_more(attempt, 'e') then
    life_ends(id, attempt)
    return NO_ATTEMPT
  end
  return attempt, mark_cancels(attempt)
end

-- What a claim changes that meets a job which asks for more, or cannot be read. rows, run and
-- attempts are those of the claim.
local function claim_begin(rows, run, attempts)
  return { rows = rows, run = run, attempts = attempts, dead = {}, lost = {}, gone = {},
    entries = {}, n_unreadable = 0 }
end

-- Such a job. extra: what is put behind its row. Returns the last token, and how many bytes have
-- been read beside its record.
local function claim_meets(claim, token, id, record, text, due_ms, until_ms, extra)
  local attempts, dead, place, n_read = claim.attempts, claim.dead, extra(id), 0
  local len, tries, _, _, attributes = record_header(id_valid(id) and record or '')
  local before, goes = attempt_before(id, text)
  local child
  text = text or ''

  if attributes and (attributes.S or attributes.P) then
    local job = { id = id, record = record, len = len, tries = tries, attributes = attributes,
      due_ms = due_ms, before = before }
    if not spawned then series_begin(attempts) end
    token = token + 1
    id, record, len, tries, attributes, due_ms, child = spawned.moment(job, token)
    if child then before, text, n_read = NO_ATTEMPT, '', #record end
  end

  local by, try, reason = before.token, before.try, before.reason
  local verdict, more
  if attributes and not goes then verdict, more = verdict_of(attributes, due_ms, before) end
  if before.more and not len then more = failures_noted(before) end
  if before.more and has_report(before) then more = report_noted(more) end

  if not record or goes or verdict == SKIPPED then life_ends(id, before) end
  if record and (goes or verdict == SKIPPED) then
    local how = goes and ENDED_CANCELLED or ENDED_SKIPPED
    if not kept_end(id, record, how, before, due_ms, child) and not child then
      table.insert(claim.gone, id)
    end
    index_entries(claim.entries, id, record)
    if goes then record, len = nil, nil end
  elseif len and not verdict then
    if not child then token = token + 1 end
    by, try = token_text(token), try + 1
    local n = #claim.run
    claim.run[n + 1], claim.run[n + 2] = decimal(until_ms), id
  elseif record then
    if not verdict then claim.n_unreadable = claim.n_unreadable + 1 end
    verdict = verdict or NOT_READ
    reason = verdict
    if more then more = failure_by(id, more, try, reason) end
    dead[#dead + 1], dead[#dead + 2] = now_ms, id
    death_note(id, attributes)
  elseif id then
    table.insert(claim.lost, id)
  end

  if record and verdict ~= SKIPPED then
    text = attempt_words(by .. ' ' .. ARGV[2], try, tries or 0, decimal(now_us), due_ms, reason,
      more)
    attempts[#attempts + 1], attempts[#attempts + 2] = id, text
    if child then spawned.stores(child) end
  end
  if len or verdict and id_valid(id) then
    local state, score = verdict_state(verdict, until_ms, due_ms)
    table.insert(claim.rows, { id, state, score, text, len and record or '', place })

    local key = attributes and attributes.U
    if key and (state == DIED or state == RUNNING and string.byte(key) == 115) then
      table.insert(claim.entries, index_key(key, id))
    end
  end
  return token, n_read
end

-- Before the first write.
local function claim_checks(claim)
  index_check(claim.entries)
  kept_check()
  lives_check()
  failures_check()
  if spawned then spawned.check(claim.rows) end
end

-- When the jobs that run are in their set, and before their attempts are there.
local function claim_leaves(claim)
  set_add(DEAD, claim.dead)
  kept_put()
  leftovers_delete(claim.gone)
  if spawned then spawned.puts() end
end

-- When the attempts are there.
local function claim_ends(claim)
  attempts_delete(claim.lost)
  lives_leave()
  index_remove(claim.entries)
  if spawned then spawned.enters() end
  failures_put()
  ends_tell()
end

-- Claims the jobs of these ids and due times, in their order, until it has read BYTES. A job that
-- cannot be read dies, with the reason, and has a row unless its id is none. extra: what is put
-- behind the row of each. Returns the rows, which ids it took, how many could not be read, and how
-- many were lost.
local function claim_jobs(token, ids, dues, extra)
  local holder, until_ms, claimed_us = ARGV[2], now_ms + tonumber(ARGV[3]), decimal(now_us)
  local run_score = decimal(until_ms)
  local rows, run, attempts, taken, claim = {}, {}, {}, {}, nil

  local at, chunk, bytes = 1, 1, 0
  while at <= #ids and bytes <= BYTES do
    local last = math.min(#ids, at + chunk - 1)
    local records = call('HMGET', JOBS, unpack(ids, at, last))
    local texts = call('HMGET', ATTEMPTS, unpack(ids, at, last))

    for i = at, last do
      local id, record, text = ids[i], records[i - at + 1] or '', texts[i - at + 1]
      local is_plain = string.byte(record) == 1 and (not text or string.byte(text) == 49)
      local len, tries
      if is_plain and id_valid(id) then len, tries = header_read(record) end
      bytes = bytes + #record
      taken[#taken + 1] = id

      if len then
        local before = attempt_read(text) or NO_ATTEMPT
        token = token + 1
        text = attempt_words(token_text(token) .. ' ' .. holder, before.try + 1, tries, claimed_us,
          dues[i], before.reason)
        run[#run + 1], run[#run + 2] = run_score, id
        attempts[#attempts + 1], attempts[#attempts + 2] = id, text
        rows[#rows + 1] = { id, RUNNING, until_ms, text, record, extra(id) }
      else
        local n_read
        if not claim then claim = claim_begin(rows, run, attempts) end
        token, n_read =
          claim_meets(claim, token, id, records[i - at + 1], text, dues[i], until_ms, extra)
        bytes = bytes + n_read
      end
    end
    at, chunk = last + 1, chunk * 2
  end

  if claim then claim_checks(claim) end
  set_remove(DUE, taken)
  if spawned then spawned.go_on() end
  if #run > 0 or spawned then token_keep(token) end
  set_add(RUN, run)
  if claim then claim_leaves(claim) end
  attempts_put(attempts)
  if not claim then return rows, taken, 0, 0 end

  claim_ends(claim)
  return rows, taken, claim.n_unreadable, #claim.lost
end

-- Their triggers do not expire any more.
local function triggers_delete(ids)
  local keys = {}
  for i, id in ipairs(ids) do keys[i] = TRIGGER .. id end
  if #keys > 0 then write('DEL', unpack(keys)) end
end
