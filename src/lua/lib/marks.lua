-- SPDX-License-Identifier: MIT
-- What is asked of a job while it runs stands in its attempt, until its run ends: c=1, it is to go,
-- and to stop; c=2, it is to go, and may run on; or d=MS, it is to wait again, due then, from the
-- beginning. The later of these stands alone. Beside d may stand j=1, lib/next.lua says why, and
-- w=MS, as in an attempt that waits.
--
-- USES    attempts due ends errors ids index jobs kept lives next notice record sets triggers
--         types unique

-- Asks, or takes back what was asked: mark is nil. Returns whether it had not been asked before.
local function mark_set(attempt, mark)
  if mark and attempt_more(attempt, string.sub(mark, 1, 1)) == string.sub(mark, 3) then
    return false
  end

  local words = {}
  local drops = next_follows(attempt) and not string.find(mark or '', '^d=')
  local names = drops and '^[cdjw]=' or '^[cd]='
  for word in string.gmatch(attempt.more or '', '[^,]+') do
    if not string.find(word, names) then words[#words + 1] = word end
  end
  words[#words + 1] = mark

  attempt.more = words[1] and table.concat(words, ',') or nil
  return true
end

-- When the job is to wait again; nil: it is not to.
local function mark_due(attempt) return tonumber(attempt_more(attempt, 'd')) end

local function mark_cancels(attempt) return attempt_more(attempt, 'c') ~= nil end

-- Is its holder to stop?
local function mark_stops(attempt) return attempt_more(attempt, 'c') == '1' end

-- Asks that the job waits again, due then, with the record that lies in next; and no later than
-- until_ms, if it is put off meanwhile.
local function mark_follow(attempt, due_ms, until_ms)
  mark_set(attempt, 'd=' .. decimal(due_ms))
  if not next_follows(attempt) then attempt.more = attempt.more .. ',j=1' end
  if until_ms and not attempt_more(attempt, 'w') then
    attempt.more = attempt.more .. ',w=' .. decimal(until_ms)
  end
end

-- The jobs of this call that go, with their entries in the index, and those whose attempts go:
-- these too, and those that wait again.
local marked_gone, marked_entries, marked_over = {}, {}, {}

-- The run of a job ends, and it is to wait again.
local function marked_waits(id, attempt, due_ms, dues, priorities)
  dues[#dues + 1], dues[#dues + 2] = due_ms, id
  if next_follows(attempt) then
    priorities[id] = next_begins(id, attempt, due_ms)
  else
    priorities[id] = attempt_priority(attempt)
  end
end

-- The run of a job ends that is not done. If something was asked, that happens: returns when the
-- job is due, which it adds to dues (due time, id...) and priorities, or -1: it goes, or is kept.
-- nil: nothing was asked.
local function marked_end(id, attempt, dues, priorities)
  if not attempt.more then return nil end

  local due_ms = mark_due(attempt)
  if due_ms then
    marked_waits(id, attempt, due_ms, dues, priorities)
  elseif mark_cancels(attempt) then
    local record
    if attempt_more(attempt, 'x') then
      record = call('HGET', JOBS, id)
      next_read(record)
      index_entries(marked_entries, id, record)
    end
    if kept_end(id, record, ENDED_CANCELLED, attempt) then return -1 end
    due_ms, marked_gone[#marked_gone + 1] = -1, id
  end
  if due_ms then
    marked_over[#marked_over + 1] = id
    life_ends(id, attempt)
  end
  return due_ms
end

-- The run of a job ends, and the job dies: its key is free. The entry leaves with those of the jobs
-- that go.
local function marked_dies(id, attempt)
  if not attempt_more(attempt, 'x') then return end

  local record = call('HGET', JOBS, id)
  local _, _, _, _, attributes = record_header(record or '')
  next_read(record)
  key_entry(marked_entries, id, record)
  death_note(id, attributes)
end

-- Before the first write.
local function marked_check()
  if #marked_over > 0 then
    check_hash(JOBS)
    check_zset(DUE)
  end
  index_check(marked_entries)
  index_check(next_entries)
  kept_check()
  lives_check()
  failures_check()
end

-- After they have left run. attempts: id, text, id, text... of the others; lost: the ids of those
-- without a record.
local function marked_leave(attempts, lost)
  kept_put()
  jobs_delete(marked_gone)
  attempts_delete(marked_over)
  attempts_put(attempts)
  attempts_delete(lost)
  lives_leave()
  next_leave()
  index_remove(marked_entries)
  failures_put()
  ends_tell()
end

-- Jobs that wait again. dues: due time, id, due time, id... priorities: by id.
local function wait_again(dues, priorities)
  if #dues == 0 then return end

  local first_due = first_to_come()
  set_add(DUE, due_entries(dues, priorities))
  triggers_set(dues, true)
  notice_due(first_due, dues)
end

-- The attempts that change in this call, since something is asked: their ids, and id, text, id,
-- text...; and what the holders are told of whom a job is asked to stop: id, token, id, token...
local marked_ids, marked_attempts, stops = {}, {}, {}

-- Asks it of a job that runs: mark is c=1, c=2, or d=MS. Returns its attempt then, and whether that
-- is another; nil: it has none that this version can read, and nothing is asked.
local function mark_ask(id, text, mark)
  local attempt = attempt_read(text)
  if not attempt then return nil end

  if next_follows(attempt) and string.byte(mark) == 99 then next_drop(id) end
  local is_news = mark_set(attempt, mark)
  if is_news then
    marked_ids[#marked_ids + 1] = id
    marked_attempts[#marked_attempts + 1] = id
    marked_attempts[#marked_attempts + 1] = attempt_text(attempt)
  end
  return attempt, is_news
end

-- Its holder is to look at the mark.
local function stop_tell(id, attempt)
  if id_valid(id) then stops[#stops + 1], stops[#stops + 2] = id, attempt.token end
end

-- Removes first, for a Redis that is out of memory.
local function stops_put()
  attempts_delete(marked_ids)
  next_leave()
  attempts_put(marked_attempts)
  if #stops > 0 then notice_publish('stop ' .. table.concat(stops, ' ')) end
end
