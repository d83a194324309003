-- SPDX-License-Identifier: MIT
-- A selection: the jobs of one state, or some of them. It takes many calls. Each walks on through
-- the set of the state, by score and id, from where the call before has stopped.
--
-- The walk ends, whatever happens meanwhile: it goes no further than the highest score of its
-- beginning, and leaves what was claimed since. Before the set of its state it looks at the leases
-- that are over: their jobs wait or are dead, and no sweep has passed.
--
-- Jobs that run are counted and left; or asked, if the call says so: then those are counted of
-- which it was not asked before. A renewal moves a job on in its set, so they are asked wherever
-- they are.
--
-- USES    attempts marks ranks rows tokens

local SETS = { DUE, RUN, DEAD } -- by state

-- A walk, from a cursor on; '' is its beginning. set: through which set it goes, behind which score
-- and id. token: the last one at its beginning; highest: the highest score of the set of its state
-- then.
local function selection_begin(cursor)
  local walk = { state = tonumber(ARGV[2]), jobs = {}, n_running = 0, bytes = 0 }
  walk.asks = ARGV[7] == '1'

  if cursor == '' then
    local last = call('ZRANGE', SETS[walk.state], '-1', '-1', 'WITHSCORES')
    walk.set, walk.token, walk.highest = RUNNING, decimal(token_last()), last[2] or '0'
    walk.score, walk.id = '0', ''
    return walk
  end

  local set
  set, walk.token, walk.highest, walk.score, walk.id =
    string.match(cursor, '^([123]) (%d+) (%S+) (%S+) (.*)$')
  if not set then error({ err = 'ERR this is no cursor' }) end
  walk.set = tonumber(set)
  return walk
end

-- An id that is too long for one is cut, and stands behind all that begin with the same.
local function selection_cursor(walk)
  local id = walk.id
  if #id > 255 then id = string.sub(id, 1, 255) .. '\255' end
  return table.concat({ walk.set, walk.token, walk.highest, walk.score, id }, ' ')
end

-- What is next in the set: id, score, id, score... And are these the last ones?
local function selection_page(walk, limit)
  local set, before_ms = SETS[walk.set], tonumber(ARGV[4])
  local highest = walk.set == walk.state and tonumber(walk.highest) or now_ms
  if walk.asks and walk.set == RUNNING and walk.state == RUNNING then highest = math.huge end
  if before_ms > 0 then highest = math.min(highest, before_ms - 1) end

  local first = rank_after(set, walk.score, walk.id)
  local last = call('ZCOUNT', set, '-inf', highest) - 1
  if first > last then return {}, true end
  local page = call('ZRANGE', set, first, math.min(last, first + limit - 1), 'WITHSCORES')
  return page, last < first + limit
end

-- Is a job with this state and attempt one of them?
local function selection_has(walk, state, text)
  local attempt = attempt_read(text)
  local reason = attempt and attempt.reason or ''
  if state ~= walk.state or not string.find(reason, ARGV[3], 1, true) then return false end

  local is_left = state == RUNNING and not walk.asks
  return is_left or not attempt or tonumber(attempt.token) <= tonumber(walk.token)
end

-- Meets one that runs. mark_of: what is asked of a job.
local function selection_meet(walk, id, text, mark_of)
  if not walk.asks then
    walk.n_running = walk.n_running + 1
    return
  end

  local mark = mark_of(id)
  local attempt, is_news = mark_ask(id, text, mark)
  if is_news then
    walk.n_running = walk.n_running + 1
    if mark == 'c=1' then stop_tell(id, attempt) end
  end
end

-- Takes the jobs of a page; true: these are enough for one call.
local function selection_take(walk, page, mark_of)
  local limit, ids = math.min(tonumber(ARGV[5]), BATCH), {}
  for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
  local texts = #ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}

  for i, id in ipairs(ids) do
    local n_asked = walk.asks and walk.n_running or 0
    if #walk.jobs + n_asked >= limit or walk.bytes > BYTES then return true end

    local set, text = SETS[walk.set], texts[i] or ''
    walk.score, walk.id = page[2 * i], id
    local state = job_state(id, set, time_of(walk.score), text)
    local is_one = selection_has(walk, state, text)
    if is_one and state == RUNNING then
      selection_meet(walk, id, text, mark_of)
    elseif is_one then
      local record = call('HGET', JOBS, id)
      walk.bytes = walk.bytes + #(record or '')
      local job = { id = id, set = set, score = walk.score, state = state, record = record }
      job.asked = set == RUN and string.byte(text) == 50 and is_marked(attempt_read(text))
      table.insert(walk.jobs, job)
    end
  end
  return false
end

-- The jobs of this call, how many others run, and the next cursor; '': none is left. mark_of: what
-- is asked of a job that runs, if the call says so.
local function selection_jobs(cursor, mark_of)
  local walk, n_looked = selection_begin(cursor), 0

  repeat
    local page, is_last = selection_page(walk, BATCH - n_looked)
    local enough = selection_take(walk, page, mark_of)
    n_looked = n_looked + #page / 2
    if is_last and not enough then
      if walk.set == walk.state then return walk.jobs, walk.n_running, '' end
      walk.set, walk.score, walk.id = walk.state, '0', ''
    end
  until enough or n_looked == BATCH
  return walk.jobs, walk.n_running, selection_cursor(walk)
end
