-- SPDX-License-Identifier: MIT
-- A job as replies show it.
--
-- USES    attempts

-- A lease that is over is over, even if no sweep has passed yet.
local function job_row(id, set, score, record)
  local text = call('HGET', ATTEMPTS, id) or ''
  local state = (set == DUE and WAITING) or (set == RUN and RUNNING) or DIED
  if set == RUN and score <= now_ms then
    local attempt = attempt_read(text)
    state = (attempt and tries_used_up(attempt)) and DIED or WAITING
  end
  return { id, state, score, text, record }
end
