-- SPDX-License-Identifier: MIT
-- Which listeners are alive: each name in `alive`, with the end of its heartbeat.

-- The names whose heartbeats end after this moment, first those that end first.
local function alive_read(key, ...)
  return call('ZRANGEBYSCORE', key, '(' .. decimal(now_ms), '+inf', 'WITHSCORES', ...)
end

-- The version of the names, and of what they were told: below zero, the score of the empty name,
-- which no listener has. Each change makes it larger, also under a clock that was set back. Where
-- it is lost, the next one is larger by the clock.
local NO_NAME = ''

-- 0: there is none, or what another program has written is none.
local function version_of(key)
  local score = tonumber(call('ZSCORE', key, NO_NAME) or 0)
  return score < 0 and score > -2 ^ 53 and -score or 0
end

local function version_write(key, last)
  local version = math.max(last, now_us) + 1
  write('ZADD', key, '-' .. decimal(version), NO_NAME)
  return version
end
