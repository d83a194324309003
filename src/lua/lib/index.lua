-- SPDX-License-Identifier: MIT
-- The sorted set index: the jobs of each tag, each unique key and each series, and the series. All
-- scores are 0, so Redis keeps the entries in the order of their bytes. An entry is a hint: it
-- counts only if the record of its job says the same.
--
-- USES    record types

local INDEX = BASE .. 'index'

-- The entry of a unique key, by the attribute U of its job.
local function index_key(attribute, id) return 'u ' .. string.sub(attribute, 2) .. ' ' .. id end

-- Appends the entries that a job may have to a list. record may be missing.
local function index_entries(out, id, record)
  if not record or string.byte(record) ~= 2 then return end

  local _, _, _, _, attributes = record_header(record)
  for _, tag in ipairs(attributes and attributes.T or {}) do
    out[#out + 1] = 't ' .. tag .. ' ' .. id
  end
  if attributes and attributes.U then
    out[#out + 1] = index_key(attributes.U, id)
  end
  if attributes and attributes.O then
    out[#out + 1] = 's ' .. string.match(attributes.O, '^[^ ]+') .. ' ' .. id
  end
  if attributes and attributes.S then out[#out + 1] = 'r ' .. id end
end

-- Does a record say what an entry of its job says?
local function index_has(entry, id, record)
  local entries = {}
  index_entries(entries, id, record)
  for _, own in ipairs(entries) do
    if own == entry then return true end
  end
  return false
end

-- Before the first write.
local function index_check(entries)
  if #entries > 0 then check_zset(INDEX) end
end

local function index_add(entries)
  local members = {}
  for i, entry in ipairs(entries) do members[2 * i - 1], members[2 * i] = '0', entry end
  if #members > 0 then write('ZADD', INDEX, unpack(members)) end
end

local function index_remove(entries)
  if #entries > 0 then write('ZREM', INDEX, unpack(entries)) end
end
