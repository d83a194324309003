-- SPDX-License-Identifier: MIT
-- The hash next: the records that jobs get which run and are to wait again after their run, as a
-- schedule asked meanwhile. The attempt of such a job says j=1, beside d=MS. Such a job has the
-- entries of both records in the index.
--
-- USES    attempts index jobs record unique

-- Does another record wait for the end of the run?
local function next_follows(attempt) return attempt_more(attempt, 'j') ~= nil end

-- The attempt of a job that is debounced and waits for its first run; it keeps until when.
local function debounced_attempt(record, due_ms, until_ms)
  local _, tries = record_header(record)
  return attempt_words('0 -', 0, tries or 10, '0', due_ms, '', 'w=' .. decimal(until_ms))
end

-- The record that a job has now; of one whose lease is over that which was to follow, and then the
-- one before it, too.
local function record_now(id, set, score)
  local record = call('HGET', JOBS, id)
  if not record or set ~= RUN or score > now_ms then return record end

  local attempt = attempt_read(call('HGET', ATTEMPTS, id))
  local follows = attempt and next_follows(attempt) and call('HGET', NEXT, id)
  if not follows then return record end
  return follows, record
end

-- The entries that are in one list and not in the other.
local function entries_but(entries, others)
  local out, other = {}, {}
  for _, entry in ipairs(others) do other[entry] = true end
  for _, entry in ipairs(entries) do
    if not other[entry] then out[#out + 1] = entry end
  end
  return out
end

-- What leaves next in this call, and what becomes of it: ids; id, record, id, record...; id,
-- attempt...; the entries that leave the index; and how many bytes of records were read.
local next_ids, next_records, next_attempts, next_entries = {}, {}, {}, {}
local next_bytes = 0

-- A record was read, of the bytes that a call may read.
local function next_read(record) next_bytes = next_bytes + #(record or '') end

-- The record that was to follow becomes that of its job, whose run is over. attempt: it waits from
-- now on, due then, as this one says; nil: it does not. Returns its attempt, '' if it has none.
local function next_take(id, before, record, attempt, due_ms)
  local old, own, n = {}, {}, #next_records
  next_ids[#next_ids + 1], next_records[n + 1], next_records[n + 2] = id, id, record
  next_bytes = next_bytes + #record
  index_entries(old, id, before)
  index_entries(own, id, record)
  for _, entry in ipairs(entries_but(old, own)) do next_entries[#next_entries + 1] = entry end

  local until_ms = attempt and tonumber(attempt_more(attempt, 'w'))
  if not until_ms then return '' end
  local text = debounced_attempt(record, due_ms, until_ms)
  next_attempts[#next_attempts + 1], next_attempts[#next_attempts + 2] = id, text
  return text
end

-- The run of a job ends, and it waits again: with the record that was to follow, if there is one.
-- Returns its priority.
local function next_begins(id, attempt, due_ms)
  local before, record = call('HGET', JOBS, id), call('HGET', NEXT, id)
  next_bytes = next_bytes + #(before or '')
  if not record then return attempt_priority(attempt) end

  next_take(id, before, record, attempt, due_ms)
  return record_priority(record)
end

-- The entries that the record to follow has, and the one of the run has not.
local function next_own(id, record)
  local own, others, key = {}, {}, {}
  local before = call('HGET', JOBS, id)
  local _, until_start = record_key(before)
  index_entries(own, id, record)
  index_entries(others, id, before)
  if until_start then key_entry(key, id, before) end
  return entries_but(own, entries_but(others, key))
end

-- Another record is to follow; the entries of this one leave the index. Returns it.
local function next_replace(id)
  local record = call('HGET', NEXT, id)
  next_bytes = next_bytes + #(record or '')
  for _, entry in ipairs(next_own(id, record)) do next_entries[#next_entries + 1] = entry end
  return record
end

-- Its record leaves, and is that of no job.
local function next_forget(id) next_ids[#next_ids + 1] = id end

-- None is to follow the run.
local function next_drop(id)
  next_forget(id)
  next_replace(id)
end

-- These entries are those of jobs, too.
local function next_entries_stay(entries) next_entries = entries_but(next_entries, entries) end

-- entries: id, record, id, record...
local function next_put(entries)
  if #entries > 0 then write('HSET', NEXT, unpack(entries)) end
end

local function next_delete(ids)
  if #ids > 0 then write('HDEL', NEXT, unpack(ids)) end
end

-- After the attempts of these jobs have gone.
local function next_leave()
  jobs_put(next_records)
  next_delete(next_ids)
  attempts_put(next_attempts)
  index_remove(next_entries)
end
