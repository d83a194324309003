local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local DEAD = BASE .. 'dead'
local ATTEMPTS = BASE .. 'attempts'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local wrote = false
local numbers = {}
local function attempt_text(attempt)
  local by = attempt.token .. ' ' .. attempt.holder
  local function attempt_words(by, try, tries, claimed_us, due_ms, reason)
    local function number_text(number)
      local text = numbers[number]
      local function decimal(number)
        if number < 100000000 then return string.format('%d', number) end
        local high = math.floor(number / 100000000)
        return string.format('%d%08d', high, number - high * 100000000)
      end
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
local function main()
  local out, ids, dead, attempts = { now_us }, {}, {}, {}
  call('ZCARD', DEAD)
  local held = attempts_held(3)
  for at = 3, #ARGV, 3 do
    local id, _, reason = unpack(ARGV, at, at + 2)
    local attempt = held[#out]
    out[#out + 1] = attempt and 1 or 'EGONE'
    if attempt then
      ids[#ids + 1], attempt.reason = id, reason
      dead[#dead + 1], dead[#dead + 2] = now_ms, id
      attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
    end
  end
  if #ids > 0 then call('ZREM', RUN, unpack(ids)) wrote = true end
  if #dead > 0 then call('ZADD', DEAD, unpack(dead)) wrote = true end
  if #attempts > 0 then call('HSET', ATTEMPTS, unpack(attempts)) wrote = true end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HMGET HSET TIME ZADD ZCARD ZMSCORE ZREM', '(%u+)|?(%l*)') do
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
