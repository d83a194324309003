-- SPDX-License-Identifier: MIT
-- Groups: an id under which bodies are gathered (attribute P), until one job is made of them. A
-- group waits in due like a job and never runs. Its parts are the list p:ID, each behind its
-- length, so the body of the job is all of them as they stand there. The attempt of a group says
-- n=JOBS, that it has made, g=PARTS:BYTES, that it has, and w=MS, when it is due at the latest.
--
-- USES    attempts record

-- The parts of groups that go in this call.
local parts_gone = {}

-- The record of a job goes; with that of a group go its parts.
local function parts_forget(id, record)
  if record_gathers(record) then parts_gone[#parts_gone + 1] = PARTS .. id end
end

local function parts_leave()
  if #parts_gone > 0 then write('DEL', unpack(parts_gone)) end
end

-- All that a group has; nil: its key is of another type.
local function parts_read(id)
  local kind = call('TYPE', PARTS .. id).ok
  if kind ~= 'list' and kind ~= 'none' then return nil end
  return call('LRANGE', PARTS .. id, '0', '-1')
end

-- What the attempt of a group says of its parts: how many, and how many bytes they take; nil: not.
local function parts_said(attempt)
  local n, bytes = string.match(attempt_more(attempt, 'g') or '', '^(%d+):(%d+)$')
  return tonumber(n), tonumber(bytes)
end

-- How many jobs a group has made.
local function group_made(attempt) return tonumber(attempt_more(attempt, 'n')) or 0 end
