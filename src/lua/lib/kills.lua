-- SPDX-License-Identifier: MIT
-- Jobs that wait are made dead, so that they do not run.
--
-- USES    attempts ends index lives marks next record sets triggers unique

-- Those of this call: their ids, by the set that they leave; the time and id of each; id and
-- attempt; their triggers; and the entries of their keys.
local kills = { leave = { [DUE] = {}, [RUN] = {} }, dead = {}, attempts = {}, triggers = {},
  entries = {} }

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

-- A job that waits: its id, set, score, record, and before, the one that its run had, if another
-- has followed. text: its attempt, '' if it has none. Returns the one that it gets.
local function job_is_killed(job, text, reason)
  local _, tries, _, _, attributes = record_header(job.record)
  local killed = killed_attempt(job.id, text, tries, time_of(job.score), reason, job.before)
  local n, m = #kills.dead, #kills.attempts

  table.insert(kills.leave[job.set], job.id)
  kills.dead[n + 1], kills.dead[n + 2] = now_ms, job.id
  kills.attempts[m + 1], kills.attempts[m + 2] = job.id, killed
  kills.triggers[#kills.triggers + 1] = TRIGGER .. job.id
  key_entry(kills.entries, job.id, job.record)
  death_note(job.id, attributes)
  if job.before then next_take(job.id, job.before, job.record, nil, 0) end
  return killed
end

local function kills_put()
  index_check(kills.entries)
  index_check(next_entries)
  lives_check()
  set_remove(DUE, kills.leave[DUE])
  set_remove(RUN, kills.leave[RUN])
  set_add(DEAD, kills.dead)
  attempts_put(kills.attempts)
  lives_leave()
  if #kills.triggers > 0 then write('DEL', unpack(kills.triggers)) end
  next_leave()
  index_remove(kills.entries)
  ends_tell()
end
