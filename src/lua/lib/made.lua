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

-- The record with these attributes, and the length of its header.
local function record_of_pieces(pieces, before, body)
  local text = table.concat(pieces)
  local header = before .. length_text(#text) .. text
  return header .. body, #header
end

-- One more attribute, in the order of the letters.
local function piece_add(pieces, letter, value)
  local at = #pieces + 1
  while at > 1 and string.byte(pieces[at - 1]) > string.byte(letter) do at = at - 1 end
  table.insert(pieces, at, letter .. length_text(#value) .. value)
end

-- The record of a job of a maker, which its attribute O names, and without what is the maker's own:
-- its moments, its limits, and its key. parts: those of a group, which are its body; it says how
-- many (attribute p). Returns the length of its header, too.
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

-- The nth job of a maker that has an id, a record with a header of the length len, its tries, and
-- its attributes. token: a text. What the record of the job says is known, so that nobody reads it.
local function made_job(maker, n, token, due_ms, parts)
  local attributes = { O = maker.id .. ' ' .. decimal(n), p = parts and decimal(#parts) }
  local record, len = made_record(maker, attributes.O, parts)
  for letter, value in pairs(maker.attributes) do
    if not string.find(letter, '[COPSU]') then attributes[letter] = value end
  end
  if attributes.m then record = created_put(record, nil) end

  local id = maker.id .. '~' .. token
  if #id > 255 then len, attributes = nil, nil end
  record_made(record, len, maker.tries, attributes)
  return { id = id, record = record, due_ms = due_ms, len = len, tries = maker.tries,
    attributes = attributes }
end
