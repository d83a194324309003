-- SPDX-License-Identifier: MIT
-- When the life of a job was first scheduled: the attribute m of its record.
--
-- USES    record

-- A record that asks for it gets the time: that in the record which it replaces, or now. before:
-- nil if it replaces none. Returns whether it asks, too. All behind m in a header are digits, or
-- of letters that this version does not know, so the last m with 13 digits is the attribute.
local function created_put(record, before)
  if string.byte(record) ~= 2 then return record, false end

  local len, _, _, _, attributes = record_header(record)
  if not attributes or not attributes.m then return record, false end

  local digits = string.rep('%d', 13)
  local first, rest = string.match(string.sub(record, 1, len), '^(.*m\r)' .. digits .. '(.*)$')
  if not first then return record, false end

  local _, _, _, _, old = record_header(before or '')
  local kept = old and old.m and string.match(old.m, '^[1-9]' .. string.rep('%d', 12) .. '$')
  return first .. (kept or decimal(now_ms)) .. rest .. string.sub(record, len + 1), true
end
