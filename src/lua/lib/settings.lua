-- SPDX-License-Identifier: MIT
-- The settings of the queue: '1 name=value name=value '. What is missing has its default.

local CONF = BASE .. 'conf'

-- A duration, as 500ms 90s 30m 12h or 7d, in ms; nil: it is none.
local function duration_ms(text)
  local number, unit = string.match(text, '^(%d+)(%l+)$')
  local scale = ({ ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000 })[unit or '']
  return scale and tonumber(number) * scale
end

-- The names in their order, and the value of each; also of names that only newer versions know.
local function settings_read(text)
  if string.sub(text, 1, 2) ~= '1 ' then
    error({ err = 'ERR ' .. CONF .. ' is in a format that this version cannot read' })
  end

  local names, values = {}, {}
  for name, value in string.gmatch(text, '([^ =]+)=([^ ]*)') do
    if not values[name] then names[#names + 1] = name end
    values[name] = value
  end
  return names, values
end

-- As they are shown: a pause that is over is none.
local function settings_words(names, values)
  local words = {}
  if (tonumber(values.paused) or 0) <= now_ms then values.paused = nil end
  for _, name in ipairs(names) do
    if values[name] then words[#words + 1], values[name] = name .. '=' .. values[name], nil end
  end
  return words
end
