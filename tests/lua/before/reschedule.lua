local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
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
local function set_remove(set, ids)
  if #ids > 0 then call('ZREM', set, unpack(ids)) wrote = true end
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
local TRIGGER = BASE .. 't:'
local space = string.find(ARGV[1], ' ', 1, true)
local AHEAD = space and tonumber(string.sub(ARGV[1], space)) or math.huge
local function main()
  local out, dues, moved, revived, bytes = { now_us }, {}, {}, {}, 0
  local oldest = call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
  local first_due = tonumber(oldest[2] or 0)
  if oldest[2] and first_due <= now_ms then
    local after = '(' .. decimal(now_ms)
    local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    first_due = tonumber(first[2] or 0)
  end
  for at = 2, #ARGV, 2 do
    if bytes > 262144 then break end
    local id, due_ms = ARGV[at], due_of(ARGV[at + 1])
    local set, score = set_of(id)
    local record = set and call('HGET', JOBS, id)
    local reply
    if not record then
      reply = 'ENOENT'
    elseif is_running(set, score) then
      reply = 'EBUSY'
    elseif due_ms > now_ms + 315576000000 then
      reply = 'EINVAL'
    else
      bytes = bytes + #record
      reply = job_row(id, set, score, string.sub(record, 1, record_header(record) or 0))
      if reply[2] == 3 then revived[#revived + 1], reply[4] = id, '' end
      reply[2], reply[3] = 1, due_ms
      dues[#dues + 1], dues[#dues + 2] = due_ms, id
      if set ~= DUE then moved[#moved + 1] = { set, { id } } end
    end
    out[#out + 1] = reply
  end
  if #dues > 0 then call('ZADD', DUE, unpack(dues)) wrote = true end
  for _, from in ipairs(moved) do set_remove(from[1], from[2]) end
  if #revived > 0 then call('HDEL', ATTEMPTS, unpack(revived)) wrote = true end
  for i = 1, #dues, 2 do
    local due_ms, id = dues[i], dues[i + 1]
    local key = TRIGGER .. id
    if due_ms > now_ms and due_ms - now_ms <= AHEAD then
      call('SET', key, '1', 'PXAT', math.max(due_ms - 1, now_ms + 1)) wrote = true
    elseif not false then
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
    for command, sub in string.gmatch('DEL HDEL HGET SET TIME ZADD ZRANGE ZRANGEBYSCORE ZREM ZSCORE', '(%u+)|?(%l*)') do
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
