local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local JOBS = BASE .. 'jobs'
local ATTEMPTS = BASE .. 'attempts'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local wrote = false
local held_by = ARGV[2] == '*' and ' ' or ' ' .. ARGV[2] .. ' '
local function is_held(text, token)
  local first = '1 ' .. token .. held_by
  return text and string.sub(text, 1, #first) == first
end
local function main()
  local ids = {}
  call('HLEN', JOBS)
  for at = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local texts, ends = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
  local out, done = { now_us }, {}
  for at = 3, #ARGV, 2 do
    local i = #out
    if ends[i] and is_held(texts[i], ARGV[at + 1]) then
      out[i + 1], done[#done + 1] = 1, ids[i]
    else
      out[i + 1] = 'EGONE'
    end
  end
  if #done > 0 then call('ZREM', RUN, unpack(done)) wrote = true end
  if #done > 0 then call('HDEL', JOBS, unpack(done)) wrote = true end
  if #done > 0 then call('HDEL', ATTEMPTS, unpack(done)) wrote = true end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HDEL HLEN HMGET TIME ZMSCORE ZREM', '(%u+)|?(%l*)') do
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
