-- SPDX-License-Identifier: MIT
-- The limits of a queue, which all its listeners keep together: the settings max_running, how many
-- jobs run, and rate, how many start in any window of time.
--
-- USES    notice settings

-- The last starts, us, the oldest first: as many as rate allows in a window.
local RATE = BASE .. 'rate'

-- A field of attempts, and no id: since the last settle a claim has met max_running. A settle reads
-- it along with the attempts, so one whose queue has no limit does nothing for it.
local MET = '{max_running}'

-- What the settings allow; nil: they limit nothing, or say it in a way that this version cannot
-- read. n_starts and window_us: of the rate; most: of max_running.
local function limits_of(values)
  local n_starts, window = string.match(values.rate or '', '^(%d+)/(%w+)$')
  local window_ms = window and duration_ms(window)
  local most = tonumber(string.match(values.max_running or '', '^%d+$'))
  local limits = { n_running = 0 }
  if window_ms and tonumber(n_starts) > 0 then
    limits.n_starts, limits.window_us = tonumber(n_starts), window_ms * 1000
  end
  if most and most > 0 then limits.most = most end
  return (limits.n_starts or limits.most) and limits or nil
end

-- Is it out of the window? One that is to come is of a clock that was set back since, and is out of
-- it when it is as far away as one that was: so no clock closes a queue for good. What is no number
-- is out of it too.
local function rate_is_over(limits, start_us)
  return math.abs(now_us - (tonumber(start_us) or 0)) >= limits.window_us
end

-- How many of so many jobs may start now. The one that would be the first, and the n_starts before
-- it, are in no window together.
local function rate_room(limits, wanted)
  local room = limits.n_starts - call('LLEN', RATE)
  if room >= wanted then return wanted end

  local first = math.max(0, -room)
  room = math.max(0, room)
  for _, start_us in ipairs(call('LRANGE', RATE, first, first + wanted - room - 1)) do
    if not rate_is_over(limits, start_us) then break end
    room = room + 1
  end
  return room
end

-- So many jobs have started.
local function rate_keep(limits, n)
  local starts = {}
  for i = 1, n do starts[i] = decimal(now_us) end
  if n > 0 then
    write('RPUSH', RATE, unpack(starts))
    write('LTRIM', RATE, -limits.n_starts, -1)
  end
end

-- When the next job may start, ms; 0: now.
local function rate_until(limits)
  local first_us = call('LINDEX', RATE, -limits.n_starts)
  if not first_us or rate_is_over(limits, first_us) then return 0 end
  return math.ceil((first_us + limits.window_us) / 1000)
end

-- How many of so many jobs may start now. Reads each key that limits_close() may write.
local function limits_room(limits, wanted)
  local room = limits.n_starts and rate_room(limits, wanted) or wanted
  if limits.most then
    limits.n_running = call('ZCOUNT', RUN, '(' .. decimal(now_ms), '+inf')
    limits.is_met = call('HEXISTS', ATTEMPTS, MET) == 1
    room = math.max(0, math.min(room, limits.most - limits.n_running))
  end
  return room
end

-- Who is kept back by max_running hears of the next job that ends: so its gate opens at the latest
-- when the first lease does, which is that of a holder that has died. Removes first, for a Redis
-- that is out of memory.
local function running_until(limits)
  if not limits.is_met then
    write('HDEL', ATTEMPTS, MET)
    write('HSET', ATTEMPTS, MET, '1')
  end
  local after = '(' .. decimal(now_ms)
  return time_of(call('ZRANGEBYSCORE', RUN, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- After a claim; was it kept back: did it want more jobs than may start? Returns until when no more
-- are given out; 0: they are, as not all that were taken have started.
local function limits_close(limits, rows, is_kept_back)
  local n, until_ms = 0, 0
  for _, row in ipairs(rows) do
    if row[2] == RUNNING then n = n + 1 end
  end
  if limits.n_starts then rate_keep(limits, n) end
  if not is_kept_back then return 0 end

  if limits.n_starts then until_ms = rate_until(limits) end
  if limits.most and limits.n_running + n >= limits.most then
    until_ms = math.max(until_ms, running_until(limits))
  end
  return until_ms
end

-- Has anybody met max_running? Asked by who has the settings, and not the attempts.
local function limits_are_met(text)
  return string.find(text, '^1 .*max_running=') and call('HEXISTS', ATTEMPTS, MET) == 1
end

-- The runs of these jobs end. If anybody has met max_running, that leaves with other fields of
-- attempts; returns whether it did: then all are to be told.
local function limits_leave(is_met, ids, fields)
  local tells = is_met and #ids > 0
  if tells then fields[#fields + 1] = MET end
  return tells
end

-- Those whom max_running has kept back claim again, or learn that the first lease ends earlier.
local function limits_tell(tells)
  if tells then notice_publish('queue') end
end
