-- Shows the settings of a queue, and changes some of them: all that are named, or none. Makes the
-- groups that forward_groups names, where they are missing.
--
-- KIND    single
-- ROLE    listener
-- USES    answer limits notice settings
-- KEYS    due none
-- READS   conf stream
-- WRITES  conf rate past stream notice
-- ARGV    database
--         changes         'name=value name=value'; an empty value: the default; '': only shows
-- RETURNS now_us
--         wrong           text: the change that is refused, and the rule that it breaks; '': none
--         settings        text: 'name=value name=value' of those that have not their defaults
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1)

local QUEUE = string.match(BASE, '{(.*)}:$')

-- A list or a stream of this key. What is in the slot of the queue has its name as the first hash
-- tag; a cluster of one node would not notice another.
local function target_kept(value)
  local kind, key = string.match(value, '^(%l+):?(.*)$')
  if kind ~= 'stream' and kind ~= 'list' then return nil end

  local own = BASE .. kind
  if key == '' then key = own end
  local is_ours = string.sub(key, 1, #BASE) == BASE and key ~= own
  local is_near = string.match(key, '^[^{]*{([^}]*)}') == QUEUE
  return is_near and not is_ours and #key <= 255 and kind .. ':' .. key or nil
end

-- The setting of a number.
local function number_from(least, most)
  local function kept(value)
    local number = tonumber(string.match(value, '^%d+$'))
    return number and number >= least and number <= most and decimal(number) or nil
  end
  return { rule = 'must be a number from ' .. least .. ' to ' .. decimal(most), kept = kept }
end

-- Of each setting the value to be kept, by the one that was given; nil: it breaks the rule, as an
-- empty one does, which is the default.
local SETTINGS = {
  paused = {
    rule = 'must be a time in ms, or + and a number of ms from now; at most 9007199254740992',
    kept = function(value)
      local sign, digits = string.match(value, '^(%+?)(%d+)$')
      local ms = tonumber(digits)
      if sign == '+' then ms = now_ms + ms end
      return ms and ms <= 2 ^ 53 and decimal(ms) or nil
    end,
  },
  forward = {
    rule = 'must be stream, list, stream:KEY or list:KEY, where {' .. QUEUE ..
      '} is the first hash tag of KEY, and KEY is none of the keys of lapse',
    kept = target_kept,
  },
  forward_max = number_from(1, 1000000000),
  max_running = number_from(1, 1000000000),
  rate = {
    rule = 'must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s',
    kept = function(value)
      local digits, window = string.match(value, '^(%d+)/(%w+)$')
      local n, ms = tonumber(digits), window and duration_ms(window)
      local is_good = ms and n >= 1 and n <= 10000 and ms >= 1 and ms <= 86400000
      return is_good and decimal(n) .. '/' .. window or nil
    end,
  },
  dead_max = number_from(0, 1000000000),
  history_days = number_from(0, 366),
  dead_keep = {
    rule = 'must be a duration from 1s to 3652d: 90s 30m 12h 7d',
    kept = function(value)
      local ms = duration_ms(value)
      return ms and ms >= 1000 and ms <= 315532800000 and value or nil
    end,
  },
  forward_element = {
    rule = 'must be job, body or id',
    kept = function(value) return ({ job = 'job', body = 'body', id = 'id' })[value] end,
  },
  forward_groups = {
    rule = 'must be names with a comma between, at most 1024 bytes',
    kept = function(value)
      local has_gap = string.find(',' .. value .. ',', ',,', 1, true)
      return not has_gap and #value <= 1024 and value or nil
    end,
  },
}

-- What is wrong with a change; nil: nothing, and values has it.
local function change(values, word)
  local name, value = string.match(word, '^([^=]+)=([!-~]*)$')
  local setting = SETTINGS[name or '']
  if not name then return word .. ': must be NAME=VALUE, of printable ASCII characters' end
  if not setting then return word .. ': there is no such setting' end

  values[name] = setting.kept(value)
  return value ~= '' and not values[name] and word .. ': ' .. setting.rule or nil
end

-- What is wrong with all settings together, and the target; nil: nothing.
local function conflict(values)
  local kind, key = string.match(values.forward or '', '^(%a+):(.+)$')
  for name, needed in pairs({ forward_element = 'list', forward_groups = 'stream' }) do
    if values[name] and kind ~= needed then
      return name .. '=' .. values[name] .. ': only if forward is a ' .. needed
    end
  end

  local is = key and call('TYPE', key).ok or 'none'
  if is ~= 'none' and is ~= kind then
    return 'forward=' .. values.forward .. ': the type of this key is ' .. is
  end
end

-- The key of the stream, and the groups that it is to have and has not.
local function groups_missing(values)
  local key, there, missing = string.match(values.forward or '', '^stream:(.+)$'), {}, {}
  if key and call('EXISTS', key) == 1 then
    for _, group in ipairs(call('XINFO', 'groups', key)) do there[group[2]] = true end
  end
  for group in string.gmatch(values.forward_groups or '', '[^,]+') do
    if not there[group] then missing[#missing + 1] = group end
    there[group] = true
  end
  return key, missing
end

local function main()
  local names, values = settings_read(call('GET', CONF) or '1 ')
  local had_rate, wrong = values.rate, nil

  for word in string.gmatch(ARGV[2], '[^ ]+') do
    names[#names + 1] = string.match(word, '^[^=]*')
    wrong = wrong or change(values, word)
  end
  if ARGV[2] ~= '' then wrong = wrong or conflict(values) end
  if wrong then return { now_us, wrong, '' } end

  local key, missing = groups_missing(values)
  local forgets_starts = had_rate and not values.rate
  local forgets_past = values.history_days == '0'
  local words = settings_words(names, values)
  local settings = table.concat(words, ' ')
  if ARGV[2] == '' then return { now_us, '', settings } end

  -- What begins with a removal works when Redis is out of memory.
  write('DEL', CONF)
  if #words > 0 then write('SET', CONF, '1 ' .. settings .. ' ') end
  if forgets_starts then write('DEL', RATE) end
  if forgets_past then write('UNLINK', BASE .. 'past') end
  for _, group in ipairs(missing) do
    write('XGROUP', 'create', key, group, '0', 'MKSTREAM') -- from its start: none misses an entry
  end
  notice_publish('queue')
  return { now_us, '', settings }
end
return answer(main)
