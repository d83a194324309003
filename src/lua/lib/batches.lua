-- SPDX-License-Identifier: MIT
-- Batches: jobs that name the same batch (attribute B), and the job whose id is that name, the
-- batch's own. When the batch is closed and all the others have ended, its own job is due. The
-- index says who is in it: 'b NAME ID', from the schedule of a job to its end, in whatever way. The
-- hash batches counts who has left it; its own job says b=1 in its attempt while it waits for them.
--
-- USES    attempts due notice sets triggers

local BATCHES = BASE .. 'batches'

-- Is added to the number of a batch when it is closed.
local CLOSED = 1000000000000

-- How many jobs have left a batch, and CLOSED if it is closed.
local function batch_count(name) return tonumber(call('HGET', BATCHES, name)) or 0 end

local function batch_is_empty(name)
  local first, last = '[b ' .. name .. ' ', '(b ' .. name .. '!' -- the character behind the space
  return #call('ZRANGEBYLEX', INDEX, first, last, 'LIMIT', 0, 1) == 0
end

-- Does a job with this attempt wait for its batch?
local function batch_is_awaited(attempt)
  return attempt and attempt_more(attempt, 'b') ~= nil
end

-- Has it no job any more, and should have ended by now? So should one whose number is none.
local function batch_is_over(name)
  local text = call('HGET', BATCHES, name)
  local n = tonumber(text or 0)
  return not n or n >= CLOSED and batch_is_empty(name)
end

-- All jobs of a closed batch have ended: its own job is due now, if it has not begun.
local function batch_ends(name)
  write('HDEL', BATCHES, name)
  local attempt = attempt_read(call('HGET', ATTEMPTS, name))
  if not batch_is_awaited(attempt) or not call('ZSCORE', DUE, name) then return end

  local ids, dues, priorities = { name }, { now_ms, name }, { [name] = attempt_priority(attempt) }
  local scores = due_entries(dues, priorities)
  set_add(DUE, scores)
  attempts_delete(ids)
  triggers_set(dues, false)
  notice_publish('0 ' .. name)
end

-- The entry of a job of a batch has left the index. Behind a removal, for a Redis that is out of
-- memory.
local function batch_leaves(name)
  local n = batch_count(name) + 1
  write('HSET', BATCHES, name, decimal(n))
  if n >= CLOSED and batch_is_empty(name) then batch_ends(name) end
end
