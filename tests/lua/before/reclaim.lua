local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local ATTEMPTS = BASE .. 'attempts'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local wrote = false
local function main()
  local page = call('ZSCAN', RUN, ARGV[3], 'COUNT', 500)
  local out, ids = { now_us, tonumber(page[1]) }, {}
  for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end
  for first = 1, #ids, 1000 do
    local texts = call('HMGET', ATTEMPTS, unpack(ids, first, math.min(first + 999, #ids)))
    for i, text in ipairs(texts) do
      local token, holder = string.match(text or '', '^1 (%d+) (%S+) ')
      if holder == ARGV[2] then out[#out + 1], out[#out + 2] = ids[first + i - 1], token end
    end
  end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HMGET TIME ZSCAN', '(%u+)|?(%l*)') do
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
