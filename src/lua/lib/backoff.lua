-- SPDX-License-Identifier: MIT
-- How long a job waits by itself before it runs again.
--
-- USES    attempts record

-- The multiples of this by numbers that follow each other are the most evenly spread over 0 to 1,
-- their whole parts left out.
local GOLDEN = 0.6180339887498949

-- The wait after a try by the attribute b of a record; nil: it has no such form. part: 0 to 1, by
-- chance.
local function wait_by(kind, try, first_ms, most_ms, part)
  local ten_years_ms = 315576000000
  if kind == 'f' then return math.min(first_ms, ten_years_ms) end
  if kind == '2' then return math.min(most_ms, 1000 * 2 ^ math.min(60, try)) end
  if kind == '4' then
    local wait_ms = 1000 * ((try - 1) ^ 4 + 15) + math.floor(part * first_ms) * try
    return math.min(wait_ms, ten_years_ms)
  end
  if not string.find(kind, '^l%d[%d,]*$') then return nil end

  local waits = {}
  for wait_ms in string.gmatch(kind, '%d+') do waits[#waits + 1] = tonumber(wait_ms) end
  return math.min(waits[math.min(try, #waits)], ten_years_ms)
end

-- Its first wait, twice as long with each try, up to its longest wait; and of that up to a quarter
-- less, so that jobs that failed together do not come back together; or what its attribute b says.
-- The token says how much less: the tokens of one claim follow each other. A record that is missing
-- or cannot be read has the defaults.
local function backoff_of(record, attempt)
  local _, _, first_ms, most_ms, attributes = record_header(record or '')
  local try = math.max(1, attempt.try)
  local part = tonumber(string.sub(attempt.token, -6)) * GOLDEN % 1
  if attributes and attributes.b then
    local said_ms = wait_by(attributes.b, try, first_ms, most_ms, part)
    if said_ms then return said_ms end
  end

  local wait_ms = math.min(most_ms or 3600000, (first_ms or 1000) * 2 ^ math.min(60, try - 1))
  return wait_ms - math.floor(part * (math.floor(wait_ms / 4) + 1))
end

-- What sweep puts down as the reason.
local LEASE_ENDED = 'the lease ended'

-- When a job is due whose lease ended then: at once, and by its backoff if the lease of the run
-- before ended too, or a job that kills its process would kill ten of them in a second. Where a
-- process said something of the job in between, the reason is another. nil: its tries are used up,
-- or none of its runs may begin so late, and it dies. Also returns how much it has read.
local function due_after_lease(id, attempt, end_ms)
  local due_ms, n_read = end_ms, 0
  if tries_used_up(attempt) then return nil, 0 end

  if attempt.reason == LEASE_ENDED then
    local record = call('HGET', JOBS, id) or ''
    due_ms, n_read = end_ms + backoff_of(record, attempt), #record
  end
  if due_ms > attempt_last_ms(attempt) then due_ms = nil end
  return due_ms, n_read
end
