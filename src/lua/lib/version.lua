-- SPDX-License-Identifier: MIT
-- The version of what `alive` says, but for the ends of heartbeats: below zero, the score of the
-- empty name, which no listener has. Each change makes it larger, also under a clock that was set
-- back. Where it is lost, the next one is larger by the clock.
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
