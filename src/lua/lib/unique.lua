-- SPDX-License-Identifier: MIT
-- Unique keys: a key is a second name of the job that holds it. A job holds its key while it waits
-- or runs, or only until it is claimed for the first time; and while it runs that of the record
-- which is to follow, too. An entry 'u KEY ID' of the index leads to the job, and the job itself
-- decides.
--
-- USES    attempts record rows sets

-- The key that a record names, and whether the job holds it only until its first claim; nil: none.
local function record_key(record)
  if not record or string.byte(record) ~= 2 then return nil end

  local _, _, _, _, attributes = record_header(record)
  local text = attributes and attributes.U
  if not text then return nil end
  return string.sub(text, 2), string.byte(text) == 115
end

-- Does a job hold the key that its record names? If its lease is over, the record that was to
-- follow is its record.
local function key_is_held(id, until_start)
  local set, score = set_of(id)
  if set ~= DUE and set ~= RUN then return false end

  local text = call('HGET', ATTEMPTS, id) or ''
  local attempt = attempt_read(text)
  if until_start and text ~= '' and (not attempt or attempt.token ~= '0') then return false end
  if set == RUN and score <= now_ms and attempt and attempt_more(attempt, 'j') then return false end
  return job_state(id, set, score, text) ~= DIED
end

-- Does a job that runs hold it by the record that is to follow? Returns that, too.
local function key_follows(key, id)
  local record = call('HGET', NEXT, id)
  if record_key(record) ~= key or not call('ZSCORE', RUN, id) then return false end

  local attempt = attempt_read(call('HGET', ATTEMPTS, id))
  return attempt and attempt_more(attempt, 'j'), #record
end

-- The job that holds a key (nil: the key is free), and how many bytes were read to find it. Entries
-- of jobs that do not hold it are appended to strays.
local function key_holder(key, strays)
  local first, bytes = 'u ' .. key .. ' ', 0
  local entries = call('ZRANGEBYLEX', INDEX, '[' .. first, '(u ' .. key .. '!')

  for _, entry in ipairs(entries) do
    local id = string.sub(entry, #first + 1)
    local record = call('HGET', JOBS, id)
    local own, until_start = record_key(record)
    bytes = bytes + #(record or '')
    if own == key and key_is_held(id, until_start) then return id, bytes end
    local follows, n_read = key_follows(key, id)
    if follows then return id, bytes + n_read end
    strays[#strays + 1] = entry
  end
  return nil, bytes
end

-- Appends the entry of its key to a list, if it has one.
local function key_entry(out, id, record)
  local key = record_key(record)
  if key then out[#out + 1] = 'u ' .. key .. ' ' .. id end
end

-- May a dead job live again? Then it takes its key: the entry is appended to a list. taken: the
-- jobs of this call that have done so, by key. strays: as above.
local function key_take(entries, taken, id, record, strays)
  local key = record_key(record)
  if not key then return true end

  local holder = taken[key] or key_holder(key, strays)
  if holder and holder ~= id then return false end
  taken[key] = id
  key_entry(entries, id, record)
  return true
end

-- Is the claim of a job over, since its lease is, and a call has found its key free meanwhile?
-- The key is another's then, or may be: the job can be ended, and does not go on. attempt: with the
-- end of its lease.
local function key_is_lost(id, attempt)
  if attempt.until_ms > now_ms or not attempt_more(attempt, 'x') then return false end

  local key, until_start = record_key(call('HGET', JOBS, id))
  return key and not until_start and not call('ZSCORE', INDEX, 'u ' .. key .. ' ' .. id)
end
