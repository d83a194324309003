-- SPDX-License-Identifier: MIT
-- Ids, and the order of texts.

-- Could it have been scheduled? Other programs may have written it. The rule is that of NAMES in
-- lapse.h.
local function id_valid(id) return #id <= 255 and string.find(id, '^[!-z|~]+$') end

-- Lua compares texts by the server's locale. Digits have one order in all of them.
local function bytes_of(text)
  return (text:gsub('.', function(c) return string.format('%03d', string.byte(c)) end))
end
