-- SPDX-License-Identifier: MIT
-- Stands before every script: the keys of the queue, Redis's clock, the limits of a call, and the
-- only way to write.
--
-- KEYS[1] is SPACE:{QUEUE}:due. Every other key is built from it, so a queue lives in one cluster
-- slot. KEYS[2] is SPACE:{QUEUE}:none, which never exists: while a slot moves, Redis starts no
-- script that declares a key which is not there. So none runs on a queue of which a part has gone.
-- heartbeat, alive and tell, and enter, names and forget have another key, one alone, and no queue.
-- ../README.md draws what the keys hold.

local call = redis.call

local DUE = KEYS[1]
local BASE = string.sub(DUE, 1, -4)
local RUN = BASE .. 'run'
local DEAD = BASE .. 'dead'
local JOBS = BASE .. 'jobs'
local ATTEMPTS = BASE .. 'attempts'
local NEXT = BASE .. 'next'
local KEPT = BASE .. 'kept'
local PARTS = BASE .. 'p:'
local INDEX = BASE .. 'index'

-- The state of a job in replies.
local WAITING = 1
local RUNNING = 2
local DIED = 3
local ENDED = 4

-- A call takes about a millisecond: at most BATCH jobs, and none after the record that passes
-- BYTES.
local BATCH = 100
local BYTES = 262144

-- As the number of tries of a job: it never dies of failed attempts.
local FOREVER = 4294967295

-- Redis's clock is read once, so a script acts at one moment.
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

-- Every write is noted: an error after the first one must not look like a refusal.
local wrote = false
local function write(...) call(...) wrote = true end

-- A write whose answer is needed.
local function written(...)
  local reply = call(...)
  wrote = true
  return reply
end

-- A whole number as text. tostring() would make 1.79e+15 of a number of microseconds, %.0f takes
-- three times as long as %d, and that knows no number over 2^31 on some machines.
local EIGHT_DIGITS = 100000000
local function decimal(number)
  if number < EIGHT_DIGITS then return string.format('%d', number) end

  local high = math.floor(number / EIGHT_DIGITS)
  return string.format('%d%08d', high, number - high * EIGHT_DIGITS)
end

-- A score as a time; 0: there is none. That of a job with a priority is a part of a millisecond
-- before its time; other programs may have written a score that is no time.
local function time_of(score)
  return score and math.max(1, math.min(2 ^ 53, math.ceil(tonumber(score)))) or 0
end
