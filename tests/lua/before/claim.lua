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
local function write(...) call(...) wrote = true end
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
local CONF = BASE .. 'conf'
local SEQ = BASE .. 'seq'
local millions, millions_text
local function token_text(token)
  local high = math.floor(token / 1000000)
  if high ~= millions then millions, millions_text = high, decimal(high) end
  return string.format('%s%06d', millions_text, token - high * 1000000)
end
local TRIGGER = BASE .. 't:'
local NO_ATTEMPT = { try = 0, token = '0', reason = '' }
local function claim_jobs(token, ids, dues, extra)
  local holder, until_ms, claimed_us = ARGV[2], now_ms + tonumber(ARGV[3]), decimal(now_us)
  local run_score = decimal(until_ms)
  local rows, run, attempts, dead, taken, lost = {}, {}, {}, {}, {}, {}
  local at, chunk, bytes = 1, 1, 0
  while at <= #ids and bytes <= 262144 do
    local last = math.min(#ids, at + chunk - 1)
    local records = call('HMGET', JOBS, unpack(ids, at, last))
    local texts = call('HMGET', ATTEMPTS, unpack(ids, at, last))
    for i = at, last do
      local id, record = ids[i], records[i - at + 1]
      local len, tries = record_header(id_valid(id) and record or '')
      local before = attempt_read(texts[i - at + 1]) or NO_ATTEMPT
      local by, try, reason = before.token, before.try, before.reason
      bytes = bytes + #(record or '')
      taken[#taken + 1] = id
      if len then
        token = token + 1
        by, try = token_text(token), try + 1
      elseif record then
        reason = 'stored data is in a format this version cannot read'
        dead[#dead + 1], dead[#dead + 2] = now_ms, id
      else
        lost[#lost + 1] = id
      end
      if record then
        attempts[#attempts + 1] = id
        attempts[#attempts + 1] =
          attempt_words(by .. ' ' .. holder, try, tries or 0, claimed_us, dues[i], reason)
      end
      if len then
        run[#run + 1], run[#run + 2] = run_score, id
        rows[#rows + 1] = { id, 2, until_ms, attempts[#attempts], record, extra(id) }
      end
    end
    at, chunk = last + 1, chunk * 2
  end
  if #taken > 0 then write('ZREM', DUE, unpack(taken)) end
  if #run > 0 then write('SET', SEQ, decimal(token), 'PXAT', decimal(math.floor(token / 1000) + 3600000)) end
  if #run > 0 then write('ZADD', RUN, unpack(run)) end
  if #dead > 0 then write('ZADD', DEAD, unpack(dead)) end
  if #attempts > 0 then write('HSET', ATTEMPTS, unpack(attempts)) end
  if #lost > 0 then write('HDEL', ATTEMPTS, unpack(lost)) end
  return rows, #dead / 2, #lost, taken
end
local function next_due()
  local oldest = time_of(call('ZRANGE', DUE, '0', '0', 'WITHSCORES')[2])
  if oldest == 0 or oldest > now_ms then return 0, oldest end
  local after = '(' .. decimal(now_ms)
  local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return oldest, time_of(first[2])
end
local function settings_obey(text, token)
  local function settings_read(text)
    if string.sub(text, 1, 2) ~= '1 ' then
      error({ err = 'ERR ' .. CONF .. ' is in a format that this version cannot read' })
    end
    local names, values = {}, {}
    for name, value in string.gmatch(text, '([^ =]+)=([^ ]*)') do
      if not values[name] then names[#names + 1] = name end
      values[name] = value
    end
    return names, values
  end
  local _, values = settings_read(text or '1 ')
  local paused_ms = time_of(string.match(values.paused or '', '^%d+$'))
  if paused_ms > now_ms then return { paused_ms, 0, 0, 0 } end
  local function forward_jobs(values, token)
    local function target_of(values)
      local kind, key = string.match(values.forward, '^(%a+):(.+)$')
      if kind == 'stream' then return true, key, call('XLEN', key) end
      if kind == 'list' then return false, key, call('LLEN', key) end
      error({ err = 'ERR ' .. CONF .. ' has a target that this version does not know' })
    end
    local is_stream, key, length = target_of(values)
    local room = math.min(100, (tonumber(values.forward_max) or math.huge) - length)
    if room < 1 then return { now_ms + 100, 0, 0, 0 } end
    local found = call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, room)
    local ids, dues = {}, {}
    for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], time_of(found[i + 1]) end
    local function forward_read(ids, dues, token)
      local jobs, dead, attempts, lost, taken = {}, {}, {}, {}, {}
      local at, chunk, bytes = 1, 1, 0
      while at <= #ids and bytes <= 262144 do
        local last = math.min(#ids, at + chunk - 1)
        local records = call('HMGET', JOBS, unpack(ids, at, last))
        local texts = call('HMGET', ATTEMPTS, unpack(ids, at, last))
        for i = at, last do
          local id, record = ids[i], records[i - at + 1]
          local len = record_header(id_valid(id) and record or '')
          local before = attempt_read(texts[i - at + 1])
          local try = before and before.try or 0
          bytes = bytes + #(record or '')
          taken[#taken + 1] = id
          if len then
            token = token + 1
            jobs[#jobs + 1] = { id, decimal(dues[i]), decimal(try + 1), token_text(token),
              string.sub(record, len + 1) }
          elseif record then
            local by = (before and before.token or '0') .. ' ' .. ARGV[2]
            dead[#dead + 1], dead[#dead + 2] = now_ms, id
            attempts[#attempts + 1] = id
            attempts[#attempts + 1] = attempt_words(by, try, 0, decimal(now_us), dues[i],
              'stored data is in a format this version cannot read')
          else
            lost[#lost + 1] = id
          end
        end
        at, chunk = last + 1, chunk * 2
      end
      return jobs, dead, attempts, lost, taken, token
    end
    local jobs, dead, attempts, lost, taken, last_token = forward_read(ids, dues, token)
    local gone, triggers = {}, {}
    for i, job in ipairs(jobs) do gone[i] = job[1] end
    for i, id in ipairs(taken) do triggers[i] = TRIGGER .. id end
    local is_missing = is_stream and length == 0 and #gone > 0 and call('EXISTS', key) == 0
    local function groups_make(key, groups)
      for group in string.gmatch(groups, '[^,]+') do
        write('XGROUP', 'create', key, group, '0', 'MKSTREAM')
      end
    end
    if is_missing then groups_make(key, values.forward_groups or '') end
    local function target_add(is_stream, key, kind, jobs)
      local elements = {}
      for i, job in ipairs(jobs) do
        if is_stream then
          write('XADD', key, '*', 'id', job[1], 'due_ms', job[2], 'try', job[3], 'token', job[4],
            'body', job[5])
        elseif kind == 'id' then
          elements[i] = job[1]
        elseif kind == 'body' then
          elements[i] = job[5]
        else
          elements[i] = table.concat(job, ' ')
        end
      end
      if #elements > 0 then write('LPUSH', key, unpack(elements)) end
    end
    target_add(is_stream, key, values.forward_element, jobs)
    if #taken > 0 then write('ZREM', DUE, unpack(taken)) end
    if #gone > 0 then write('HDEL', JOBS, unpack(gone)) end
    if #gone > 0 then write('SET', SEQ, decimal(last_token), 'PXAT', decimal(math.floor(last_token / 1000) + 3600000)) end
    if #dead > 0 then write('ZADD', DEAD, unpack(dead)) end
    if #attempts > 0 then write('HSET', ATTEMPTS, unpack(attempts)) end
    if #gone > 0 then write('HDEL', ATTEMPTS, unpack(gone)) end
    if #lost > 0 then write('HDEL', ATTEMPTS, unpack(lost)) end
    if #triggers > 0 then write('DEL', unpack(triggers)) end
    return { 0, #gone, #dead / 2, #lost }
  end
  if values.forward then return forward_jobs(values, token) end
  if ARGV[2] == '-' then return { 9007199254740992, 0, 0, 0 } end
end
local function due_jobs(limit)
  local ids, dues, place = {}, {}, {}
  if limit > 0 then
    local most = math.min(limit, 100)
    local found = call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, most)
    for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], time_of(found[i + 1]) end
  elseif #ARGV > 4 then
    local scores = call('ZMSCORE', DUE, unpack(ARGV, 5, math.min(#ARGV, 100 + 4)))
    for i, score in ipairs(scores) do
      local id = ARGV[i + 4]
      if score and tonumber(score) <= now_ms and not place[id] then
        ids[#ids + 1], dues[#dues + 1], place[id] = id, time_of(score), i
      end
    end
  end
  return ids, dues, place
end
local function main()
  local limit = tonumber(ARGV[4])
  local ids, dues, place = due_jobs(limit)
  call('ZCARD', DUE)
  call('ZCARD', RUN)
  call('ZCARD', DEAD)
  local stored = call('MGET', SEQ, CONF)
  local seq, settings = stored[1], stored[2]
  local text = seq or call('GET', SEQ) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  local most = 2 ^ 53 - 2 ^ 20
  if not last or last > most or decimal(last) ~= text then
    error({ err = 'ERR ' .. SEQ .. ' is no token' })
  end
  local token = math.max(last, now_us)
  local obeyed = (settings or ARGV[2] == '-') and settings_obey(settings, token)
  if obeyed then
    local gate_ms, n_forwarded, n_dead, n_lost = unpack(obeyed)
    local oldest_due_ms, next_due_ms = 0, 0
    if gate_ms == 0 then oldest_due_ms, next_due_ms = next_due() end
    return { now_us, oldest_due_ms, next_due_ms, n_dead, n_lost, gate_ms, n_forwarded }
  end
  local function place_of(id) return place[id] or 0 end
  local rows, n_dead, n_lost, taken = claim_jobs(token, ids, dues, place_of)
  if limit > 0 then
    local keys = {}
    for i, id in ipairs(taken) do keys[i] = TRIGGER .. id end
    if #keys > 0 then write('DEL', unpack(keys)) end
  end
  local oldest_due_ms, next_due_ms = next_due()
  return { now_us, oldest_due_ms, next_due_ms, n_dead, n_lost, 0, 0, unpack(rows) }
end
local ok, reply = pcall(main)
if ok then return reply end
local function answer_error(thrown)
  local function with_command(reason)
    if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
    for command, sub in string.gmatch('DEL EXISTS GET HDEL HMGET HSET LLEN LPUSH MGET SET TIME XADD XGROUP|create XLEN ZADD ZCARD ZMSCORE ZRANGE ZRANGEBYSCORE ZREM', '(%u+)|?(%l*)') do
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
