-- SPDX-License-Identifier: MIT
-- Goes before every script. KEYS[1] is SPACE:{QUEUE}:due; every other key is built from it, so a queue lives in one
-- cluster slot. ARGV[1] is the database, for the name of the channel of notices; behind a space arm_ahead_ms, if there is one.
-- Formats are drawn in README.md. A script reads and checks first and writes last: Redis does not roll back. Only
-- rem(), add(), put(), forget(), drop() and hold() below write what a job is.
local call = redis.call
local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local DEAD = BASE .. 'dead'
local JOBS = BASE .. 'jobs'
local ATTEMPTS = BASE .. 'attempts'
local SEQ = BASE .. 'seq'
local WAITING, RUNNING, DIED = 1, 2, 3
local BATCH, BYTES, FOREVER, TEN_YEARS = 100, 262144, 4294967295, 315576000000
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local wrote = false
-- tostring() makes 1.79e+15 of a microsecond
local function num(x) return string.format('%.0f', x) end
-- A score as a time; 0: none. Anybody may have written it, also one that is no time at all.
local function ms(score) return score and math.max(1, math.min(2 ^ 53, tonumber(score))) or 0 end
-- Lua compares texts by the server's locale; in all of them digits are in order.
local function bytes_of(s) return (s:gsub('.', function(c) return string.format('%03d', string.byte(c)) end)) end

-- Could it have been scheduled? Anybody may have written it. The rule is that of NAMES in lapse.h.
local function id_ok(id) return #id <= 255 and string.find(id, '^[!-z|~]+$') end

local function write(...)
  local reply = call(...)
  wrote = true
  return reply
end
local function rem(set, ids) if #ids > 0 then write('ZREM', set, unpack(ids)) end end
local function add(set, pairs) if #pairs > 0 then write('ZADD', set, unpack(pairs)) end end
local function put(records) if #records > 0 then write('HSET', JOBS, unpack(records)) end end
local function forget(ids) if #ids > 0 then write('HDEL', ATTEMPTS, unpack(ids)) end end
local function drop(set, ids)
  rem(set, ids)
  if #ids > 0 then write('HDEL', JOBS, unpack(ids)) end
  forget(ids)
end

-- Length of a record's header, and its tries; nil when this version cannot read it.
local function header(rec)
  local version, flags = string.byte(rec, 1, 2)
  if version ~= 1 or not flags or flags > 7 then return nil end
  local at, tries = 3, 10
  for bit_of = 0, flags > 0 and 2 or -1 do
    if bit.band(flags, bit.lshift(1, bit_of)) ~= 0 then
      local value, scale, byte = 0, 1
      repeat
        byte = string.byte(rec, at)
        if not byte or scale > 2 ^ 42 then return nil end
        value, scale, at = value + (byte % 128) * scale, scale * 128, at + 1
      until byte < 128
      if bit_of == 0 then tries = value end
    end
  end
  if tries < 1 or tries > FOREVER or #rec - at >= 1048576 then return nil end
  return at - 1, tries
end

-- What ATTEMPTS keeps of a job from its first claim on; nil when there is nothing, or nothing readable. Token and
-- claimed_us stay texts: they are large, and formatting a number is the dearest thing that a script does.
local function parse(text)
  if not text then return nil end
  local try, tries, token, claimed_us, due, holder, reason =
    string.match(text, '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if not try then return nil end
  return { try = tonumber(try), tries = tonumber(tries), token = token, claimed_us = claimed_us, due = tonumber(due),
    holder = holder, reason = reason }
end
local function text_of(h)
  local format = '1 %.0f %.0f %s %s %.0f %s %s'
  return string.format(format, h.try, h.tries, h.token, h.claimed_us, h.due, h.holder, h.reason)
end
local function hold(pairs) if #pairs > 0 then write('HSET', ATTEMPTS, unpack(pairs)) end end
local function used_up(h) return h.tries ~= FOREVER and h.try >= h.tries end

-- The set a job is in and its score there; nil when it is in none. No id is empty: find('') only trips over a set of
-- the wrong type, before the first write.
local function find(id)
  for _, set in ipairs({ DUE, RUN, DEAD }) do
    local score = call('ZSCORE', set, id)
    if score then return set, ms(score) end
  end
end
-- What a job lacks to be whole (see check), and its sets, with their scores; nil: nothing, or it is gone.
local function lack(id)
  local sets = {}
  for _, set in ipairs({ DUE, RUN, DEAD }) do
    local score = call('ZSCORE', set, id)
    if score then sets[#sets + 1], sets[set] = set, ms(score) end
  end
  if call('HEXISTS', JOBS, id) == 0 then
    return #sets > 0 and 'record' or call('HEXISTS', ATTEMPTS, id) == 1 and 'attempt' or nil, sets
  end
  return #sets == 0 and 'none' or #sets > 1 and 'many' or
    sets[RUN] and call('HEXISTS', ATTEMPTS, id) == 0 and 'holder' or nil, sets
end
local function busy(set, score) return set == RUN and score > now end

-- A job as replies show it. A lease that is over is over, also when no sweep has been by.
local function row(id, set, score, rec)
  local held = call('HGET', ATTEMPTS, id) or ''
  local state = (set == DUE and WAITING) or (set == RUN and RUNNING) or DIED
  if set == RUN and score <= now then
    local h = parse(held)
    state = (h and used_up(h)) and DIED or WAITING
  end
  return { id, state, score, held, rec }
end

-- Token, as text, and holder of what parse() reads, for a fifth of its price.
local function ticket(text) return string.match(text or '', '^1 %d+ %d+ (%d+) %d+ %d+ (%S+) ') end
-- Is a job held by this token by the holder ARGV[2]? '*' is whoever holds it.
local function is_held(token, holder, by) return token and token == by and (holder == ARGV[2] or ARGV[2] == '*') end

-- The jobs of ARGV[3], [3 + step]... (id, token) that ARGV[2] still holds by that token; false for the others.
local function ours(step)
  local ids, out = {}, {}
  for i = 3, #ARGV, step do ids[#ids + 1] = ARGV[i] end
  local helds, scores = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
  for i, id in ipairs(ids) do
    local h = scores[i] and parse(helds[i])
    out[i] = h and is_held(h.token, h.holder, ARGV[3 + (i - 1) * step + 1]) and h or false
    if out[i] then h.id = id end
  end
  return out
end

local space = string.find(ARGV[1], ' ', 1, true)
local AHEAD = space and tonumber(string.sub(ARGV[1], space)) or math.huge
-- Fires one millisecond after its PXAT (Redis: expired when now is greater). A job due now has none: the wake tells.
-- One that is due later than AHEAD gets it when it comes near. fresh: there is none yet.
local function arm(id, due, fresh)
  local key = BASE .. 't:' .. id
  if due > now and due - now <= AHEAD then write('SET', key, '1', 'PXAT', math.max(due - 1, now + 1))
  elseif not fresh then write('DEL', key) end
end

-- What the next token is one more than: the last one, or the time, us. By the time tokens are distinct and grow also
-- where Redis lost its last writes; by the last one also where its clock was set back.
local function last_token()
  local text = call('GET', SEQ) or '0'
  local token = string.find(text, '^%d+$') and tonumber(text)
  local most = 2 ^ 53 - 2 ^ 20 -- Lua counts exactly up to 2^53
  if not token or num(token) ~= text or token > most then error({ err = 'ERR ' .. SEQ .. ' is no token' }) end
  return math.max(token, now_us)
end
-- Once the clock has passed the last token it alone suffices. An hour: rarely enough to expire, an event for all.
local function keep_token(token) write('SET', SEQ, num(token), 'PXAT', num(math.floor(token / 1000) + 3600000)) end
-- When to look next: due time of the oldest waiting job that is due already, and of the first that is not; 0: none.
local function outlook()
  local oldest = ms(call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2])
  if oldest == 0 or oldest > now then return 0, oldest end
  return oldest, ms(call('ZRANGEBYSCORE', DUE, '(' .. num(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- At most one a script. 'HEAD ID ID...': HEAD is a new first due time (0: none); the ids are due now. Only helps
-- others, so it comes last and its errors are ignored.
local function tell(text) redis.pcall('PUBLISH', BASE .. 'notice:' .. string.match(ARGV[1], '^%d+'), text) end
local function wake(before, pairs)
  local head, ids = 0, {}
  for i = 1, #pairs, 2 do
    local due = pairs[i]
    if due <= now then
      if id_ok(pairs[i + 1]) then ids[#ids + 1] = pairs[i + 1] end
    elseif (before == 0 or due < before) and (head == 0 or due < head) then head = due end
  end
  if head > 0 or #ids > 0 then tell(num(head) .. ' ' .. table.concat(ids, ' ')) end
end

-- Unbegun jobs wait again, due as before; their try does not count.
local function give_back(jobs)
  local ids, dues, held = {}, {}, {}
  find('')
  for i, h in ipairs(jobs) do
    h.try, ids[i] = h.try - 1, h.id
    dues[#dues + 1], dues[#dues + 2] = h.due, h.id
    held[#held + 1], held[#held + 2] = h.id, text_of(h)
  end
  rem(RUN, ids)
  add(DUE, dues)
  hold(held)
  wake(0, dues)
end

-- Redis 7.0 does not say which command it denies; later ones do. The key is given often enough for any command:
-- acl_check_cmd('SET') alone reads past its arguments, and Redis 7.0.15 crashes. embed.sh fills in what is called.
local function denied(why)
  if not string.find(why, "can't run this command or subcommand", 1, true) then return why end
  for command in string.gmatch('@COMMANDS@', '%u+') do
    if not redis.acl_check_cmd(command, DUE, DUE, DUE) then return why .. ': ' .. command end
  end
  return why
end

-- An error after the first write must not look like a refusal.
local function guard(main)
  local ok, reply = pcall(main)
  if ok then return reply end
  local why = denied(reply.err or reply) -- a text's err is nil
  return { err = wrote and ('LAPSE EBROKEN ' .. why) or why }
end
