-- SPDX-License-Identifier: MIT
-- The attributes of a record: what a job asks for beside its body. ../README.md lists the letters.

-- By letter the value, or, of a letter that may come more than once, the list of its values. nil: a
-- length is wrong, or the letters do not ascend, or this version does not know a capital one, or
-- not such a value of it. The tables are made here, because most records have no attributes.
local function attributes_read(text)
  local forms = {} -- by capital letter, what its values look like
  local repeated = { h = true }
  local found, at, last = {}, 1, 0

  while at <= #text do
    local code, size, high = string.byte(text, at, at + 2)
    local letter = string.char(code)
    if code < last or not size or not string.find(letter, '[A-Za-z]') then return nil end

    at = at + 2
    if size >= 128 then
      if not high then return nil end
      size, at = size - 128 + high * 128, at + 1
    end
    local value = string.sub(text, at, at + size - 1)
    if #value < size then return nil end

    local again = found[letter] ~= nil and not repeated[letter]
    if code < 97 and (again or not string.find(value, forms[letter] or '.^')) then return nil end
    if repeated[letter] then
      found[letter] = found[letter] or {}
      table.insert(found[letter], value)
    elseif not again then
      found[letter] = value
    end
    at, last = at + size, code
  end
  return found
end
