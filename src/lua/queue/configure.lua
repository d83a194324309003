-- Shows the settings of a queue, and changes some of them: all that are named, or none.
--
-- KIND    single
-- ROLE    listener
-- USES    answer notice settings
-- KEYS    due none
-- READS   conf
-- WRITES  conf notice
-- ARGV    database
--         changes         'name=value name=value'; an empty value: the default; '': only shows
-- RETURNS now_us
--         wrong           text: the change that is refused, and the rule that it breaks; '': none
--         settings        text: 'name=value name=value' of those that have not their defaults
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1)

-- Of each setting the value to be kept, by the one that was given; nil: it breaks the rule.
local SETTINGS = {
  paused = {
    rule = 'must be a time in ms, or + and a number of ms from now; at most 9007199254740992',
    kept = function(value)
      local sign, digits = string.match(value, '^(%+?)(%d+)$')
      local ms = tonumber(digits)
      if ms and sign == '+' then ms = now_ms + ms end
      return ms and ms <= 2 ^ 53 and decimal(ms) or nil
    end,
  },
}

-- What is wrong with a change; nil: nothing, and values has it.
local function change(values, word)
  local name, value = string.match(word, '^([^=]+)=([!-~]*)$')
  local setting = SETTINGS[name]
  if not name then return 'must be NAME=VALUE, of printable ASCII characters' end
  if not setting then return 'there is no such setting' end

  values[name] = value ~= '' and setting.kept(value) or nil
  return value ~= '' and not values[name] and setting.rule or nil
end

-- As lapse shows them: a pause that is over is none.
local function settings_words(names, values)
  local words = {}
  if values.paused and (tonumber(values.paused) or 0) <= now_ms then values.paused = nil end
  for _, name in ipairs(names) do
    if values[name] then words[#words + 1], values[name] = name .. '=' .. values[name], nil end
  end
  return words
end

local function main()
  local names, values = settings_read(call('GET', CONF) or '1 ')

  for word in string.gmatch(ARGV[2], '[^ ]+') do
    local name = string.match(word, '^[^=]*')
    if not values[name] then names[#names + 1] = name end
    local wrong = change(values, word)
    if wrong then return { now_us, word .. ': ' .. wrong, '' } end
  end

  local words = settings_words(names, values)
  local settings = table.concat(words, ' ')
  if ARGV[2] == '' then return { now_us, '', settings } end

  -- What begins with a removal works when Redis is out of memory.
  write('DEL', CONF)
  if #words > 0 then write('SET', CONF, '1 ' .. settings .. ' ') end
  notice_publish('queue')
  return { now_us, '', settings }
end
return answer(main)
