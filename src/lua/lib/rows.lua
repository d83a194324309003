-- SPDX-License-Identifier: MIT
-- A job as replies show it.
--
-- USES    attempts backoff

-- What sweep will make of a job whose lease ended then: its state, and its score.
local function ended_as(id, text, end_ms)
  local attempt = attempt_read(text)
  if not attempt then return WAITING, end_ms end
  if is_marked(attempt) then return WAITING, tonumber(attempt_more(attempt, 'd')) or end_ms end

  local due_ms = due_after_lease(id, attempt, end_ms)
  return due_ms and WAITING or DIED, due_ms or end_ms
end

-- The state of a job in a set, with this score, and the score that goes with the state. text: its
-- attempt, '' if it has none. A lease that is over is over, even if no sweep has passed yet.
local function job_state(id, set, score, text)
  local state = (set == DUE and WAITING) or (set == RUN and RUNNING) or (set == KEPT and ENDED)
    or DIED
  if set == RUN and score <= now_ms then return ended_as(id, text, score) end
  return state, score
end

local function job_row(id, set, score, record)
  local text = call('HGET', ATTEMPTS, id) or ''
  local state, shown_score = job_state(id, set, score, text)
  return { id, state, shown_score, text, record }
end
