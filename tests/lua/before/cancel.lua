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
local function main()
  local out, bytes = { now_us }, 0
  local leaves = { [DUE] = {}, [RUN] = {}, [DEAD] = {} }
  local deleted, triggers = {}, {}
  for at = 2, #ARGV do
    if bytes > 262144 then break end
    local id = ARGV[at]
    local set, score = set_of(id)
    local record = call('HGET', JOBS, id)
    bytes = bytes + #(record or '')
    if is_running(set, score) then
      out[at] = 'EBUSY'
    elseif not set and not record then
      out[at] = 'ENOENT'
    else
      local header = string.sub(record or '', 1, record_header(record or '') or 0)
      out[at] = job_row(id, set or DEAD, score or now_ms, header)
      table.insert(leaves[set or DEAD], id)
      deleted[#deleted + 1] = id
      triggers[#triggers + 1] = TRIGGER .. id
    end
  end
  for _, set in ipairs({ DUE, RUN, DEAD }) do set_remove(set, leaves[set]) end
  if #deleted > 0 then call('HDEL', JOBS, unpack(deleted)) wrote = true end
  if #deleted > 0 then call('HDEL', ATTEMPTS, unpack(deleted)) wrote = true end
  if #triggers > 0 then call('DEL', unpack(triggers)) wrote = true end
  return out
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('DEL HDEL HGET TIME ZREM ZSCORE', '(%u+)|?(%l*)') do
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
