-- SPDX-License-Identifier: MIT
-- The jobs that series and groups make: each has the record of its maker, but for what is the
-- maker's own.
--
-- USES    created record

-- The bytes of a length.
local function length_text(len)
  if len < 128 then return string.char(len) end
  return string.char(128 + len % 128) .. length_text(math.floor(len / 128))
end

-- The attributes of a record of version 2, each with its letter in front, and the record without
-- them, in two parts: what stands before their size, and the body. len: of the header.
local function record_pieces(record, len)
  local at, pieces = 3, {}
  for flag = 0, 2 do
    if bit.band(string.byte(record, 2), bit.lshift(1, flag)) ~= 0 then
      at = string.find(record, '[%z\1-\127]', at) + 1
    end
  end
  local before = string.sub(record, 1, at - 1)
  at = string.find(record, '[%z\1-\127]', at) + 1

  while at <= len do
    local size, high = string.byte(record, at + 1, at + 2)
    local stop = at + 2 + size
    if size >= 128 then stop = at + 3 + size - 128 + high * 128 end
    pieces[#pieces + 1] = string.sub(record, at, stop - 1)
    at = stop
  end
  return pieces, before, string.sub(record, len + 1)
end

-- The record with these attributes, and the length of its header; nil: nobody could read it.
local function record_of_pieces(pieces, before, body)
  local text = table.concat(pieces)
  local header = before .. length_text(#text) .. text
  local is_read = #text <= 4096 and #body <= 1048576
  return header .. body, is_read and #header or nil
end

-- One more attribute, in the order of the letters.
local function piece_add(pieces, letter, value)
  local at = #pieces + 1
  while at > 1 and string.byte(pieces[at - 1]) > string.byte(letter) do at = at - 1 end
  table.insert(pieces, at, letter .. length_text(#value) .. value)
end

-- The record of a job of a maker, which its attribute O names, and without what is the maker's own:
-- its moments, its limits, and its key. parts: those of a group, which are its body; it says how
-- many (attribute p). Returns the length of its header, too, as record_of_pieces() does.
local function made_record(maker, of, parts)
  local all, before, body = record_pieces(maker.record, maker.len)
  local pieces = {}
  for _, piece in ipairs(all) do
    if not string.find(piece, '^[COPSU]') then pieces[#pieces + 1] = piece end
  end

  piece_add(pieces, 'O', of)
  if parts then
    piece_add(pieces, 'p', decimal(#parts))
    body = table.concat(parts)
  end
  return record_of_pieces(pieces, before, body)
end

-- The nth job of a maker that has an id, and a record with a header of the length len. token: a
-- text. What the record of the job says is known, so that nobody reads it. The job has no len and
-- no attributes if nobody could read it, or if its id is none.
local function made_job(maker, n, token, due_ms, parts)
  local id, of = maker.id .. '~' .. token, maker.id .. ' ' .. decimal(n)
  local record, len = made_record(maker, of, parts)
  local job = { id = id, record = record, due_ms = due_ms }
  if not len or #of > 255 or not string.find(of, ' [1-9]%d*$') then
    record_made(record)
    return job
  end

  local _, tries, backoff_ms, backoff_max_ms, of_maker = record_header(maker.record)
  local attributes = { O = of, p = parts and decimal(#parts) }
  for letter, value in pairs(of_maker) do
    if not string.find(letter, '[COPSU]') then attributes[letter] = value end
  end
  if attributes.m then
    record = created_put(record, nil)
    job.record = record
  end

  record_made(record, len, tries, backoff_ms, backoff_max_ms, attributes)
  job.tries = tries
  if #id <= 255 then job.len, job.attributes = len, attributes end
  return job
end
