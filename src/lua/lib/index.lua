-- SPDX-License-Identifier: MIT
-- The sorted set index: the jobs of each tag, each unique key, each series and each batch, and the
-- series. All scores are 0, so Redis keeps the entries in the order of their bytes. An entry is a
-- hint: it counts only if the record of its job says the same.
--
-- USES    batches record types

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
  if attributes and attributes.B then out[#out + 1] = 'b ' .. attributes.B .. ' ' .. id end
end

-- How the entries begin of the jobs with a tag; or, of 'b NAME', of those of a batch. No tag has a
-- space.
local function index_start(tag)
  return string.find(tag, ' ', 1, true) and tag .. ' ' or 't ' .. tag .. ' '
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

-- Before the first write. A batch that a job leaves may end.
local function index_check(entries)
  if #entries > 0 then check_zset(INDEX) end
  for _, entry in ipairs(entries) do
    if string.byte(entry) == 98 then
      check_hash(BATCHES)
      check_zset(DUE)
      return
    end
  end
end

local function index_add(entries)
  local members = {}
  for i, entry in ipairs(entries) do members[2 * i - 1], members[2 * i] = '0', entry end
  if #members > 0 then write('ZADD', INDEX, unpack(members)) end
end

local function index_remove(entries)
  for _, entry in ipairs(entries) do
    local batch = string.match(entry, '^b (%S+) ')
    if batch and written('ZREM', INDEX, entry) > 0 then batch_leaves(batch) end
  end
  if #entries > 0 then write('ZREM', INDEX, unpack(entries)) end
end
