-- SPDX-License-Identifier: MIT
-- What is wrong with a job that was not left as the scripts leave it.
--
-- USES    attempts groups index limits lives record sets unique

-- The defect of a job, as check.lua names it, and its sets, with their scores; nil: it has none, or
-- is gone.
local function defect_of(id)
  local sets = {}
  for _, set in ipairs({ DUE, RUN, DEAD, KEPT }) do
    local score = call('ZSCORE', set, id)
    if score then sets[#sets + 1], sets[set] = set, time_of(score) end
  end

  if call('HEXISTS', JOBS, id) == 0 then
    if #sets > 0 then return 'record', sets end
    return id ~= MET and call('HEXISTS', ATTEMPTS, id) == 1 and 'attempt' or nil, sets
  end
  if #sets == 0 then return 'none', sets end
  if #sets > 1 then return 'many', sets end
  return sets[RUN] and call('HEXISTS', ATTEMPTS, id) == 0 and 'holder' or nil, sets
end

-- Does a record in next belong to a job that runs?
local function next_stays(id)
  local attempt = attempt_read(call('HGET', ATTEMPTS, id))
  return attempt and attempt_more(attempt, 'j') and call('ZSCORE', RUN, id)
    and call('HEXISTS', JOBS, id) == 1
end

-- Does the attempt of a job say that it has an entry in this hash, report or errors? One of a newer
-- version may.
local function entry_stays(hash, id)
  local text = call('HGET', ATTEMPTS, id)
  local attempt = attempt_read(text)
  if not attempt then return text ~= false end
  if hash == REPORT then return has_report(attempt) end
  return has_failures(attempt)
end

-- Does a group that is there say another number of parts than it has? nil: they are of another
-- type, and it dies when it is claimed.
local function parts_differ(id, record)
  if not record_gathers(record) or call('ZSCORE', KEPT, id) then return false end

  local kind = call('TYPE', PARTS .. id).ok
  if kind ~= 'list' and kind ~= 'none' then return nil end
  local said = parts_said(attempt_read(call('HGET', ATTEMPTS, id)) or NO_ATTEMPT)
  return call('LLEN', PARTS .. id) ~= said
end

-- The entries that a job should have; one that is kept has none. all: also that of a key until
-- start, which it may hold: it does not take that again where a run was to be followed by another.
local function index_own(id, record, all)
  local entries, own = {}, {}
  local _, until_start = record_key(record)
  index_entries(entries, id, record)
  if #entries > 0 and set_of(id) == KEPT then return own end

  for _, entry in ipairs(entries) do
    local is_key = string.byte(entry) == 117
    local counts = not is_key or ((all or not until_start) and key_is_held(id, until_start))
    if counts then own[#own + 1] = entry end
  end
  if next_stays(id) then index_entries(own, id, call('HGET', NEXT, id)) end
  return own
end

-- Is it an entry that no job should have? Those of other kinds are of a newer version.
local function index_is_stray(entry)
  if not string.find(entry, '^[brstu] ') then return false end

  local id = string.match(entry, '^. [^ ]+ (.+)$') or string.match(entry, '^r (.+)$')
  for _, own in ipairs(id and index_own(id, call('HGET', JOBS, id), true) or {}) do
    if own == entry then return false end
  end
  return true
end

-- The entries of a job that are missing.
local function index_missing(id, record)
  local missing = {}
  for _, entry in ipairs(index_own(id, record, false)) do
    if not call('ZSCORE', INDEX, entry) then missing[#missing + 1] = entry end
  end
  return missing
end
