local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local DEAD = BASE .. 'dead'
local JOBS = BASE .. 'jobs'
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local wrote = false
local function time_of(score)
  return score and math.max(1, math.min(2 ^ 53, tonumber(score))) or 0
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
  local ATTEMPTS = BASE .. 'attempts'
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
local function rank_after(set, score, id)
  if id == '' then return 0 end
  if time_of(call('ZSCORE', set, id)) == tonumber(score) then return call('ZRANK', set, id) + 1 end
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  local function bytes_of(text)
    return (text:gsub('.', function(c) return string.format('%03d', string.byte(c)) end))
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if bytes_of(call('ZRANGE', set, middle, middle)[1]) > bytes_of(id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
local function main()
  local set = ({ DUE, RUN, DEAD })[tonumber(ARGV[2])]
  local limit = math.min(tonumber(ARGV[3]), 100)
  local first, out, bytes = rank_after(set, ARGV[4], ARGV[5]), { now_us, 0 }, 0
  repeat
    local page = call('ZRANGE', set, first, first + limit, 'WITHSCORES')
    for i = 1, #page, 2 do
      if id_valid(page[i]) then
        if #out > limit + 1 or bytes > 262144 then
          out[2] = 1
          return out
        end
        local record = call('HGET', JOBS, page[i]) or ''
        local shown = record_header(record) and record or ''
        out[#out + 1] = job_row(page[i], set, time_of(page[i + 1]), shown)
        bytes = bytes + #record
      end
    end
    first = first + limit + 1
  until #page <= 2 * limit
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('HGET TIME ZCOUNT ZRANGE ZRANK ZSCORE', '(%u+)|?(%l*)') do
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
