-- SPDX-License-Identifier: MIT
-- The record of a job, as it was scheduled: a short header, then the body.
--
-- USES    attributes

-- What record_header() answers, of a record that it has not just answered for.
local function header_read(record)
  local version, flags = string.byte(record, 1, 2)
  if (version ~= 1 and version ~= 2) or not flags or flags > 7 then return nil end

  -- The size of the attributes is one more number behind those of the flags.
  local varints = version == 2 and flags + 8 or flags
  local at, tries, backoff_ms, backoff_max_ms, size = 3, 10, 1000, 3600000, 0
  for flag = 0, varints > 0 and 3 or -1 do
    if bit.band(varints, bit.lshift(1, flag)) ~= 0 then
      local value, scale, byte = 0, 1
      repeat
        byte = string.byte(record, at)
        if not byte or scale > 2 ^ 42 then return nil end
        value, scale, at = value + (byte % 128) * scale, scale * 128, at + 1
      until byte < 128
      if flag == 0 then
        tries = value
      elseif flag == 1 then
        backoff_ms = value
      elseif flag == 2 then
        backoff_max_ms = value
      else
        size = value
      end
    end
  end

  local attributes
  if version == 2 then
    at = at + size
    if size > 4096 or at - 1 > #record then return nil end
    attributes = attributes_read(string.sub(record, at - size, at - 1))
    if not attributes then return nil end
  end

  if tries < 1 or tries > FOREVER or #record - at >= 1048576 then return nil end
  return at - 1, tries, backoff_ms, backoff_max_ms, attributes
end

-- The record that was read last, and what it says: most are asked several things in a row.
local read_record, read_len, read_tries, read_backoff, read_backoff_max, read_attributes

-- The length of a record's header, its tries, its first and its longest wait, and its attributes
-- (nil: it has none), as attributes_read() has them; nil: this version cannot read it.
local function record_header(record)
  if record ~= read_record then
    read_record = record
    read_len, read_tries, read_backoff, read_backoff_max, read_attributes = header_read(record)
  end
  return read_len, read_tries, read_backoff, read_backoff_max, read_attributes
end

-- The same of a record that this call has made; len is nil if nobody can read it.
local function record_made(record, len, tries, backoff_ms, backoff_max_ms, attributes)
  read_record, read_len, read_tries = record, len, tries
  read_backoff, read_backoff_max, read_attributes = backoff_ms, backoff_max_ms, attributes
end

-- Is it a series that has no moment so late?
local function record_is_over(record, due_ms)
  if string.byte(record) ~= 2 then return false end

  local _, _, _, _, attributes = record_header(record)
  local until_ms = attributes and attributes.S and tonumber(string.match(attributes.S, ' (%d+)'))
  return until_ms and until_ms > 0 and due_ms > until_ms
end

-- Is it a group?
local function record_gathers(record)
  if not record or string.byte(record) ~= 2 then return false end

  local _, _, _, _, attributes = record_header(record)
  return attributes ~= nil and attributes.P ~= nil
end

-- The priority of a job; nil: it has none.
local function record_priority(record)
  if string.byte(record) ~= 2 then return nil end

  local _, _, _, _, attributes = record_header(record)
  return attributes and attributes.Q and string.byte(attributes.Q)
end
