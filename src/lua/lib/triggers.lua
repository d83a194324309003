-- SPDX-License-Identifier: MIT
-- Triggers: keys that expire when a job is due.

local TRIGGER = BASE .. 't:'

-- A job due later than this gets its trigger when it comes near: arm_ahead_ms, behind the database,
-- of which most calls have the number alone.
local AHEAD = #ARGV[1] > 2 and tonumber(string.match(ARGV[1], ' (%d+)')) or math.huge

-- Redis calls a key expired when its clock is past the key's time, hence one millisecond earlier.
-- A job that is due now has no trigger: a notice names it. fresh: it has none yet.
local function trigger_set(id, due_ms, fresh)
  local key = TRIGGER .. id
  if due_ms > now_ms and due_ms - now_ms <= AHEAD then
    write('SET', key, '1', 'PXAT', math.max(due_ms - 1, now_ms + 1))
  elseif not fresh then
    write('DEL', key)
  end
end

-- dues: due time, id, due time, id... fresh: none of them has one yet.
local function triggers_set(dues, fresh)
  for i = 1, #dues, 2 do
    local due_ms, id = dues[i], dues[i + 1]
    trigger_set(id, due_ms, fresh)
  end
end

-- Reads triggers: those whose time has come expire, and Redis publishes that. How many of them are
-- there still, and how many this reading expired.
local function triggers_read(triggers)
  if #triggers == 0 then return 0, 0 end

  local n_before = call('DBSIZE')
  local n_there = call('EXISTS', unpack(triggers))
  return n_there, n_before - call('DBSIZE')
end
