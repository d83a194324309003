-- SPDX-License-Identifier: MIT
-- The sorted sets due, run, dead and kept: a job is in exactly one of them.

-- entries: score, id, score, id...
local function set_add(set, entries)
  if #entries > 0 then write('ZADD', set, unpack(entries)) end
end

local function set_remove(set, ids)
  if #ids > 0 then write('ZREM', set, unpack(ids)) end
end

-- The set that a job is in, and its score there; nil: it is in none.
local function set_of(id)
  for _, set in ipairs({ DUE, RUN, DEAD, KEPT }) do
    local score = call('ZSCORE', set, id)
    if score then return set, time_of(score) end
  end
end

-- Has it ended so long ago that nobody knows it any more, even if no sweep has passed yet?
local function is_past(set, score) return set == KEPT and score <= now_ms end

-- Does it run, under a lease that is not over?
local function is_running(set, score) return set == RUN and score > now_ms end
