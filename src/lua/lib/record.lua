-- SPDX-License-Identifier: MIT
-- The record of a job, as it was scheduled: a short header, then the body.

-- The length of a record's header, its tries, its first and its longest wait; nil: this version
-- cannot read it.
local function record_header(record)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags or flags > 7 then return nil end

  local at, tries, backoff_ms, backoff_max_ms = 3, 10, 1000, 3600000
  for flag = 0, flags > 0 and 2 or -1 do
    if bit.band(flags, bit.lshift(1, flag)) ~= 0 then
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
      else
        backoff_max_ms = value
      end
    end
  end

  if tries < 1 or tries > FOREVER or #record - at >= 1048576 then return nil end
  return at - 1, tries, backoff_ms, backoff_max_ms
end
