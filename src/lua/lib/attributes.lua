-- SPDX-License-Identifier: MIT
-- The attributes of a record: what a job asks for beside its body. ../README.md lists the letters.

-- What was read in this call, by text (false: nil), since many jobs ask for the same.
local attributes_seen = {}

-- The tables are made here, because most records have no attributes.
local function attributes_parsed(text)
  -- of the capital letters: what their values look like, and the longest value
  local forms = {
    B = '^[!-z|~]+$',
    C = '^[a-z][a-z0-9_-]* [ -~]+$',
    G = '^[=!+-] [^ ]+ [^ ]* ',
    K = '^[1-9]%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?b?$',
    L = '^[sd][1-9]%d*$',
    O = '^[!-z|~]+ [1-9]%d*$',
    P = '^%d+ [1-9]%d* %d+$',
    Q = '^[^%z]$',
    R = '^[1-9]%d*$',
    S = '^[aln]o? %d+ %d+ [ces] %d[%d,]*$',
    T = '^[!-z|~]+$',
    U = '^[es][!-z|~]+$',
  }
  local longest = { B = 255, C = 233, G = 4096, K = 13, L = 13, O = 255, P = 32, Q = 1, R = 12,
    S = 512, T = 64, U = 256 }
  local most = { T = 8, h = math.huge } -- of the letters that may come more than once
  local found, at, last, n = {}, 1, 0, 0

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

    n = code == last and n + 1 or 1
    at, last = at + size, code
    local form, is_one_more = forms[letter], n > (most[letter] or 1)
    if code < 97 and (is_one_more or not form) then return nil end
    if form and (size > longest[letter] or not string.find(value, form)) then return nil end

    if not is_one_more then
      found[letter] = most[letter] and (found[letter] or {}) or value
      if most[letter] then found[letter][n] = value end
    end
  end
  return found
end

-- By letter the value, or, of a letter that may come more than once, the list of its values. nil: a
-- length is wrong, or the letters do not ascend, or this version does not know a capital one, or
-- not such a value of it. To be left as it is.
local function attributes_read(text)
  local found = attributes_seen[text]
  if found == nil then
    found = attributes_parsed(text) or false
    attributes_seen[text] = found
  end
  return found or nil
end

-- What the attempt of such a job says of it, for scripts that do not read its record; nil: nothing.
-- last_ms: the last moment at which a run of it may begin. failures: 1, some are kept; nil: none.
local function attributes_more(attributes, last_ms, failures)
  local words = {}
  local has_entries = attributes.B or attributes.O or attributes.T or attributes.U
  if has_entries or attributes.K then words[#words + 1] = 'x=1' end
  if attributes.Q then words[#words + 1] = 'q=' .. string.byte(attributes.Q) end
  if attributes.R then words[#words + 1] = 'f=' .. decimal(last_ms) end
  if attributes.e == '5' then words[#words + 1] = 'r=' .. (failures or '0') end
  return #words > 0 and table.concat(words, ',') or nil
end
