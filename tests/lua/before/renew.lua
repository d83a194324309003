local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local wrote = false
local held_by = ARGV[2] == '*' and ' ' or ' ' .. ARGV[2] .. ' '
local function attempts_held(step)
  local ids, out = {}, {}
  for at = 3, #ARGV, step do ids[#ids + 1] = ARGV[at] end
  local ATTEMPTS = BASE .. 'attempts'
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
  local out, ids, run = { now_us }, {}, {}
  local held = attempts_held(3)
  for at = 3, #ARGV, 3 do
    local id, _, lease_ms = unpack(ARGV, at, at + 2)
    local reply = 'EGONE'
    if held[#out] then
      reply = now_ms + tonumber(lease_ms)
      ids[#ids + 1] = id
      run[#run + 1], run[#run + 2] = reply, id
    end
    out[#out + 1] = reply
  end
  if #ids > 0 then call('ZREM', RUN, unpack(ids)) wrote = true end
  if #run > 0 then call('ZADD', RUN, unpack(run)) wrote = true end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HMGET TIME ZADD ZMSCORE ZREM', '(%u+)|?(%l*)') do
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
