local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local JOBS = BASE .. 'jobs'
local ATTEMPTS = BASE .. 'attempts'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local wrote = false
local function decimal(number)
  if number < 100000000 then return string.format('%d', number) end
  local high = math.floor(number / 100000000)
  return string.format('%d%08d', high, number - high * 100000000)
end
local function due_of(text)
  local due_ms = string.byte(text) == 43 and now_ms + tonumber(string.sub(text, 2))
    or tonumber(text)
  return math.max(now_ms, due_ms)
end
local function id_valid(id) return #id <= 255 and string.find(id, '^[!-z|~]+$') end
local TRIGGER = BASE .. 't:'
local space = string.find(ARGV[1], ' ', 1, true)
local AHEAD = space and tonumber(string.sub(ARGV[1], space)) or math.huge
local function conflicts(stored)
  local answers, replaced, moved = {}, {}, {}
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
    if tries < 1 or tries > 4294967295 or #record - at >= 1048576 then return nil end
    return at - 1, tries, backoff_ms, backoff_max_ms
  end
  local RUN = BASE .. 'run'
  local function job_row(id, set, score, record)
    local text = call('HGET', ATTEMPTS, id) or ''
    local state = (set == DUE and 1) or (set == RUN and 2) or 3
    local function attempt_read(text)
      if not text then return nil end
      local token, holder, try, tries, claimed_us, due_ms, reason =
        string.match(text, '^1 (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (.*)$')
      if not token then return nil end
      return {
        token = token,
        holder = holder,
        try = tonumber(try),
        tries = tonumber(tries),
        claimed_us = claimed_us,
        due_ms = tonumber(due_ms),
        reason = reason,
      }
    end
    local function tries_used_up(attempt)
      return attempt.tries ~= 4294967295 and attempt.try >= attempt.tries
    end
    if set == RUN and score <= now_ms then
      local attempt = attempt_read(text)
      state = (attempt and tries_used_up(attempt)) and 3 or 1
    end
    return { id, state, score, text, record }
  end
  local function set_of(id)
    local DEAD = BASE .. 'dead'
    local function time_of(score)
      return score and math.max(1, math.min(2 ^ 53, tonumber(score))) or 0
    end
    for _, set in ipairs({ DUE, RUN, DEAD }) do
      local score = call('ZSCORE', set, id)
      if score then return set, time_of(score) end
    end
  end
  local function is_running(set, score) return set == RUN and score > now_ms end
  for at = 2, #ARGV, 4 do
    local id, due, conflict = unpack(ARGV, at, at + 2)
    local i = (at + 2) / 4
    local old, set, score = stored[i], nil, nil
    if old and due_of(due) <= now_ms + 315576000000 then set, score = set_of(id) end
    if set and conflict == '0' then
      answers[i] = 'EEXIST'
    elseif set and conflict == '1' then
      local len = record_header(old)
      answers[i] = len and job_row(id, set, score, string.sub(old, 1, len)) or 'EDATA'
    elseif is_running(set, score) then
      answers[i] = 'EBUSY'
    elseif set then
      replaced[#replaced + 1] = id
      if set ~= DUE then moved[#moved + 1], moved[#moved + 2] = set, id end
    end
  end
  return answers, replaced, moved
end
local function main()
  local stored
  if #ARGV == 5 then
    stored = { call('HGET', JOBS, ARGV[2]) }
  else
    local ids = {}
    for at = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[at] end
    stored = call('HMGET', JOBS, unpack(ids))
  end
  local oldest = call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
  local first_due = tonumber(oldest[2] or 0)
  if oldest[2] and first_due <= now_ms then
    local after = '(' .. decimal(now_ms)
    local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    first_due = tonumber(first[2] or 0)
  end
  local out, dues, records = { now_us }, {}, {}
  local answers, replaced, moved
  for at = 2, #ARGV, 4 do
    local id, due, _, record = unpack(ARGV, at, at + 3)
    local i, due_ms = #out, due_of(due)
    if stored[i] and not answers then answers, replaced, moved = conflicts(stored) end
    local reply = answers and answers[i]
    if due_ms > now_ms + 315576000000 then reply = 'EINVAL' end
    if not reply then
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      records[#records + 1], records[#records + 2] = id, record
    end
    out[i + 1] = reply or due_ms
  end
  if replaced then call('HLEN', ATTEMPTS) end
  if #dues > 0 then call('ZADD', DUE, unpack(dues)) wrote = true end
  if #records > 0 then call('HSET', JOBS, unpack(records)) wrote = true end
  if replaced then
    for i = 1, #moved, 2 do
      local set, id = moved[i], { moved[i + 1] }
      if #id > 0 then call('ZREM', set, unpack(id)) wrote = true end
    end
    if #replaced > 0 then call('HDEL', ATTEMPTS, unpack(replaced)) wrote = true end
  end
  for i = 1, #dues, 2 do
    local due_ms, id, fresh = dues[i], dues[i + 1], not replaced
    local key = TRIGGER .. id
    if due_ms > now_ms and due_ms - now_ms <= AHEAD then
      call('SET', key, '1', 'PXAT', math.max(due_ms - 1, now_ms + 1)) wrote = true
    elseif not fresh then
      call('DEL', key) wrote = true
    end
  end
  local any = false
  for i = 1, #dues, 2 do
    local at_ms = dues[i]
    any = any or first_due == 0 or at_ms < first_due or at_ms <= now_ms + 999
  end
  if any then
    local words, head_ms, head = {}, first_due, nil
    local word, word_ms
    for i = 1, #dues, 2 do
      local due_ms, id = dues[i], dues[i + 1]
      if not id_valid(id) then id = '-' end
      if due_ms <= now_ms + 999 then
        if due_ms ~= word_ms then
          word, word_ms = due_ms <= now_ms and '0' or decimal(due_ms), due_ms
        end
        words[#words + 1], words[#words + 2] = word, id
        if due_ms > now_ms then head_ms, head = due_ms, nil end
      elseif head_ms == 0 or due_ms < head_ms then
        head_ms, head = due_ms, id
      end
    end
    if head then words[#words + 1] = decimal(head_ms) .. ' ' .. head end
    local text = table.concat(words, ' ')
    redis.pcall('PUBLISH', BASE .. 'notice:' .. string.match(ARGV[1], '^%d+'), text)
  end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('DEL HDEL HGET HLEN HMGET HSET SET TIME ZADD ZRANGE ZRANGEBYSCORE ZREM ZSCORE', '(%u+)|?(%l*)') do
      local first = sub ~= '' and sub or DUE
      if not redis.acl_check_cmd(command, first, DUE, DUE, DUE) then
        return reason .. ': ' .. command .. (sub ~= '' and '|' .. sub or '')
      end
    end
    return reason
  end
  local reason = with_command(thrown.err or thrown)
  return { err = wrote and ('LAPSE EBROKEN ' .. reason) or reason }
end
return answer_error(reply)
