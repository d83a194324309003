-- SPDX-License-Identifier: MIT
-- Due times: of an argument, and the next ones of the queue.

local TEN_YEARS = 315576000000

-- A job that is due within so many ms is announced by its id, and listeners look no further ahead:
-- so they know of every job before it is due. A delay of a second is common, and not announced.
local NEAR = 999

-- A calendar without moments looks for some so often.
local LOOK_MS = 60000

-- '+ms' from now, or ms; the past is now.
local function due_of(text)
  local due_ms = string.byte(text) == 43 and now_ms + tonumber(string.sub(text, 2))
    or tonumber(text)
  return math.max(now_ms, due_ms)
end

-- What is put into due for jobs with these due times (due time, id, due time, id...). Of those that
-- are due in the same millisecond the one with the higher priority comes first. priorities: by id;
-- the others have none.
local function due_entries(dues, priorities)
  if not next(priorities) then return dues end

  local out = {}
  for i = 1, #dues, 2 do
    local due_ms, id = dues[i], dues[i + 1]
    out[i], out[i + 1] = due_ms - (priorities[id] or 0) / 1024, id
  end
  return out
end

-- When the first job is due that is not due yet; 0: there is none.
local function first_to_come()
  local oldest = call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
  local first_due = time_of(oldest[2])
  if oldest[2] and first_due <= now_ms then
    local after = '(' .. decimal(now_ms)
    local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    first_due = time_of(first[2])
  end
  return first_due
end

-- When to look next: the oldest due time that has come, and the first that has not; 0: none.
local function next_due()
  local oldest = time_of(call('ZRANGE', DUE, '0', '0', 'WITHSCORES')[2])
  if oldest == 0 or oldest > now_ms then return 0, oldest end

  local after = '(' .. decimal(now_ms)
  local first = call('ZRANGEBYSCORE', DUE, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return oldest, time_of(first[2])
end
