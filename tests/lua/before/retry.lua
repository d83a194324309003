local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local DEAD = BASE .. 'dead'
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
local numbers = {}
local function attempt_text(attempt)
  local by = attempt.token .. ' ' .. attempt.holder
  local function attempt_words(by, try, tries, claimed_us, due_ms, reason)
    local function number_text(number)
      local text = numbers[number]
      if not text then
        text = decimal(number)
        numbers[number] = text
      end
      return text
    end
    return '1 ' .. by .. ' ' .. number_text(try) .. ' ' .. number_text(tries) .. ' ' .. claimed_us ..
      ' ' .. number_text(due_ms) .. ' ' .. reason
  end
  return attempt_words(by, attempt.try, attempt.tries, attempt.claimed_us, attempt.due_ms,
    attempt.reason)
end
local function tries_used_up(attempt)
  return attempt.tries ~= 4294967295 and attempt.try >= attempt.tries
end
local GOLDEN = 0.6180339887498949
local function backoff_of(record, attempt)
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
  local _, _, first_ms, most_ms = record_header(record or '')
  local doublings = math.max(0, math.min(60, attempt.try - 1))
  local wait_ms = math.min(most_ms or 3600000, (first_ms or 1000) * 2 ^ doublings)
  local part = tonumber(string.sub(attempt.token, -6)) * GOLDEN % 1
  return wait_ms - math.floor(part * (math.floor(wait_ms / 4) + 1))
end
local function first_to_come()
  local oldest = call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
  local first_due = tonumber(oldest[2] or 0)
  if oldest[2] and first_due <= now_ms then
    local after = '(' .. decimal(now_ms)
    local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    first_due = tonumber(first[2] or 0)
  end
  return first_due
end
local held_by = ARGV[2] == '*' and ' ' or ' ' .. ARGV[2] .. ' '
local function attempts_held(step)
  local ids, out = {}, {}
  for at = 3, #ARGV, step do ids[#ids + 1] = ARGV[at] end
  local texts, ends = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
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
  local function is_held(text, token)
    local first = '1 ' .. token .. held_by
    return text and string.sub(text, 1, #first) == first
  end
  for at = 3, #ARGV, step do
    local i = #out + 1
    local held = ends[i] and is_held(texts[i], ARGV[at + 1])
    out[i] = held and attempt_read(texts[i]) or false
  end
  return out
end
local function id_valid(id) return #id <= 255 and string.find(id, '^[!-z|~]+$') end
local TRIGGER = BASE .. 't:'
local space = string.find(ARGV[1], ' ', 1, true)
local AHEAD = space and tonumber(string.sub(ARGV[1], space)) or math.huge
local function main()
  local out, ids, dues, dead, attempts = { now_us }, {}, {}, {}, {}
  local first_due, bytes = first_to_come(), 0
  call('ZCARD', DEAD)
  local held = attempts_held(4)
  for at = 3, #ARGV, 4 do
    if bytes > 262144 then break end
    local id, _, delay_ms, reason = unpack(ARGV, at, at + 3)
    local attempt, reply = held[#out], 'EGONE'
    if attempt then
      ids[#ids + 1], attempt.reason = id, reason
      if tries_used_up(attempt) then
        dead[#dead + 1], dead[#dead + 2] = now_ms, id
        reply = 0
      else
        local wait_ms = tonumber(delay_ms)
        if not wait_ms then
          local record = call('HGET', JOBS, id)
          bytes, wait_ms = bytes + #(record or ''), backoff_of(record, attempt)
        end
        reply = now_ms + wait_ms
        dues[#dues + 1], dues[#dues + 2], attempt.due_ms = reply, id, reply
      end
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
    out[#out + 1] = reply
  end
  if #ids > 0 then call('ZREM', RUN, unpack(ids)) wrote = true end
  if #dues > 0 then call('ZADD', DUE, unpack(dues)) wrote = true end
  if #dead > 0 then call('ZADD', DEAD, unpack(dead)) wrote = true end
  if #attempts > 0 then call('HSET', ATTEMPTS, unpack(attempts)) wrote = true end
  for i = 1, #dues, 2 do
    local due_ms, id = dues[i], dues[i + 1]
    local key = TRIGGER .. id
    if due_ms > now_ms and due_ms - now_ms <= AHEAD then
      call('SET', key, '1', 'PXAT', math.max(due_ms - 1, now_ms + 1)) wrote = true
    elseif not true then
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
    for command, sub in string.gmatch('DEL HGET HMGET HSET SET TIME ZADD ZCARD ZMSCORE ZRANGE ZRANGEBYSCORE ZREM', '(%u+)|?(%l*)') do
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
