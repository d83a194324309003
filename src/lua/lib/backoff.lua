-- SPDX-License-Identifier: MIT
-- How long a job waits by itself before it runs again.
--
-- USES    record

-- The multiples of this by numbers that follow each other are the most evenly spread over 0 to 1,
-- their whole parts left out.
local GOLDEN = 0.6180339887498949

-- Its first wait, twice as long with each try, up to its longest wait; and of that up to a quarter
-- less, so that jobs that failed together do not come back together. The token says how much less:
-- the tokens of one claim follow each other. A record that is missing or cannot be read has the
-- defaults.
local function backoff_of(record, attempt)
  local _, _, first_ms, most_ms = record_header(record or '')
  local doublings = math.max(0, math.min(60, attempt.try - 1))
  local wait_ms = math.min(most_ms or 3600000, (first_ms or 1000) * 2 ^ doublings)

  local part = tonumber(string.sub(attempt.token, -6)) * GOLDEN % 1
  return wait_ms - math.floor(part * (math.floor(wait_ms / 4) + 1))
end

-- What sweep puts down as the reason.
local LEASE_ENDED = 'the lease ended'

-- When a job is due whose lease ended then: at once, and by its backoff if the lease of the run
-- before ended too, or a job that kills its process would kill ten of them in a second. Where a
-- process said something of the job in between, the reason is another. Also returns how much it
-- has read.
local function due_after_lease(id, attempt, end_ms)
  if attempt.reason ~= LEASE_ENDED then return end_ms, 0 end

  local record = call('HGET', JOBS, id) or ''
  return end_ms + backoff_of(record, attempt), #record
end
