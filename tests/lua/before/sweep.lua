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
local function time_of(score)
  return score and math.max(1, math.min(2 ^ 53, tonumber(score))) or 0
end
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
local function id_valid(id) return #id <= 255 and string.find(id, '^[!-z|~]+$') end
local function main()
  local ended = call('ZRANGEBYSCORE', RUN, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, 100)
  local ids, dues, dead, attempts, lost = {}, {}, {}, {}, {}
  call('ZCARD', DUE)
  call('ZCARD', RUN)
  call('ZCARD', DEAD)
  for i = 1, #ended, 2 do
    local id, end_ms = ended[i], time_of(ended[i + 1])
    local attempt = attempt_read(call('HGET', ATTEMPTS, id))
    ids[#ids + 1] = id
    if call('HEXISTS', JOBS, id) == 1 then
      local set = (attempt and tries_used_up(attempt)) and dead or dues
      set[#set + 1], set[#set + 2] = end_ms, id
      if attempt then
        attempt.due_ms, attempt.reason = end_ms, 'the lease ended'
        attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
      end
    else
      lost[#lost + 1] = id
    end
  end
  if #ids > 0 then call('ZREM', RUN, unpack(ids)) wrote = true end
  if #dues > 0 then call('ZADD', DUE, unpack(dues)) wrote = true end
  if #dead > 0 then call('ZADD', DEAD, unpack(dead)) wrote = true end
  if #attempts > 0 then call('HSET', ATTEMPTS, unpack(attempts)) wrote = true end
  if #lost > 0 then call('HDEL', ATTEMPTS, unpack(lost)) wrote = true end
  local any = false
  for i = 1, #dues, 2 do
    local at_ms = dues[i]
    any = any or 0 == 0 or at_ms < 0 or at_ms <= now_ms + 999
  end
  if any then
    local words, head_ms, head = {}, 0, nil
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
  return { now_us, #ids, #dead / 2, #ended == 100 * 2 and 1 or 0 }
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HDEL HEXISTS HGET HSET TIME ZADD ZCARD ZRANGEBYSCORE ZREM', '(%u+)|?(%l*)') do
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
