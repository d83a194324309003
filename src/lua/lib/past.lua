-- SPDX-License-Identifier: MIT
-- The history of the queue: rows of counts, each for a minute, ten minutes, an hour or a day, and
-- one for all time. ../README.md draws them.

local PAST = BASE .. 'past'

-- How long a row of each kind takes, and of which kind it becomes a part.
local ROW_MS = { m = 60000, t = 600000, h = 3600000, d = 86400000 }
local ROW_OF = { m = 't', t = 'h', h = 'd' }

-- Adds one value to counts. The longest time of a histogram is no sum.
local function counts_put(counts, name, value)
  local had = counts.values[name]
  if not had then
    counts.names[#counts.names + 1] = name
  elseif string.find(name, '^%uz') then
    value = math.max(had, value)
  else
    value = had + value
  end
  counts.values[name] = math.min(value, 2 ^ 53)
end

local function counts_read(text)
  local counts = { names = {}, values = {} }
  for name, digits in string.gmatch(text, '(%u?%l)(%d+)') do
    counts_put(counts, name, tonumber(digits))
  end
  return counts
end

local function counts_add(counts, others)
  for _, name in ipairs(others.names) do counts_put(counts, name, others.values[name]) end
end

local function counts_text(counts)
  local words = {}
  for i, name in ipairs(counts.names) do words[i] = name .. decimal(counts.values[name]) end
  return table.concat(words)
end

-- The kind of a row, and its number since 1970.
local function row_name(name)
  return string.sub(name, 1, 1), tonumber(string.sub(name, 2))
end

-- The names of all rows, by the field that has them.
local function row_names(text)
  local names = {}
  for name in string.gmatch(text or '', '[mthd]%d+') do names[#names + 1] = name end
  return names
end
