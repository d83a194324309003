-- SPDX-License-Identifier: MIT
-- What a claim makes of a due job that has attributes, before it counts a try: the job runs, is
-- skipped, or dies.
--
-- USES    attempts attributes

-- The state of a job in replies that was skipped: it is gone.
local SKIPPED = 0

-- Why a job dies whose id or record is none.
local NOT_READ = 'stored data is in a format this version cannot read'

-- The state of the job after it, and the score that goes with the state.
local function verdict_state(verdict, until_ms, due_ms)
  if not verdict then return RUNNING, until_ms end
  if verdict == SKIPPED then return SKIPPED, due_ms end
  return DIED, now_ms
end

-- Is the condition met? nil: that cannot be told, and why. EXISTS would see keys of any type, and
-- so does a guard that has no field and asks for no value.
local function guard_met(guard)
  local op, key, field, value = string.match(guard, '^(.) ([^ ]+) ([^ ]*) (.*)$')
  local queue = string.match(BASE, '{(.*)}:$')
  local found
  if string.match(key, '^[^{]*{([^}]*)}') ~= queue then
    return nil, 'it is not in the slot of the queue'
  elseif field ~= '' then
    found = redis.pcall('HGET', key, field)
  elseif op == '=' or op == '!' then
    found = redis.pcall('GET', key)
  else
    found = redis.pcall('EXISTS', key)
  end

  if type(found) == 'table' then return nil, found.err end
  if op == '=' then return found == value end
  if op == '!' then return found ~= value end
  local is_there = found and found ~= 0
  return is_there == (op == '+')
end

-- The last moment at which a run may begin, counted from the first due time: of this life, or since
-- the job was rescheduled, as its due time tells, which nothing else changes without its attempt.
local function verdict_last_ms(attributes, due_ms, before)
  if not attributes.R then return math.huge end

  local last_ms = attempt_last_ms(before)
  if before.due_ms == due_ms and last_ms < math.huge then return last_ms end
  return due_ms + tonumber(attributes.R)
end

-- Returns SKIPPED, or why the job dies, or nil: it runs; and what its attempt then says of it.
local function verdict_of(attributes, due_ms, before)
  local last_ms = verdict_last_ms(attributes, due_ms, before)
  local more = attributes_more(attributes, last_ms, attempt_more(before, 'r'))
  local late, late_ms = string.match(attributes.L or '', '^(.)(.*)$')

  if late and now_ms - due_ms > tonumber(late_ms) then
    return late == 's' and SKIPPED or 'too late: more than max_late_ms after it was due', more
  end
  if now_ms > last_ms then
    return 'too late: more than retry_for_ms after it was first due', more
  end
  if not attributes.G then return nil, more end

  local met, why = guard_met(attributes.G)
  if met == nil then return 'the key of its guard cannot be read: ' .. why, more end
  if not met then return SKIPPED, more end
  return nil, more
end
