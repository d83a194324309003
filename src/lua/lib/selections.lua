-- SPDX-License-Identifier: MIT
-- A selection: the jobs of one state, or with a tag, or some of them. It takes many calls. Each
-- walks on from where the call before has stopped: through the set of the state, by score and id;
-- or through the entries of the tag, by id (lib/tagged.lua).
--
-- The walk ends, whatever happens meanwhile: it goes no further than the highest score, or the last
-- id, of its beginning. It leaves what was claimed since, unless its script wants that by a tag,
-- where it meets each id once. Before the set of its state a walk looks at the leases that are
-- over: their jobs wait or are dead, and no sweep has passed.
--
-- Jobs that run are counted and left; or asked, if the call says so: then those are counted of
-- which it was not asked before. A renewal moves a job on in its set, so they are asked wherever
-- they are.
--
-- USES    attempts marks next ranks rows sets tagged tokens

local SETS = { DUE, RUN, DEAD, KEPT } -- by state

-- A walk, from a cursor on; '' is its beginning. set: through which set it goes, 0 is the index;
-- behind which score and id. token: the last one at its beginning; highest: the highest score of
-- the set of its state then, or the last id with the tag. takes_new: also what was claimed since.
local function selection_begin(cursor, takes_new)
  local walk = { state = tonumber(ARGV[2]), tag = ARGV[3], jobs = {}, n_running = 0, bytes = 0 }
  local is_tagged = walk.tag ~= ''
  walk.asks, walk.takes_new = ARGV[8] == '1', is_tagged and takes_new

  if not is_tagged and walk.state == 0 then error({ err = 'ERR neither a state nor a tag' }) end
  if cursor == '' then
    walk.token, walk.score, walk.id = decimal(token_last()), '0', ''
    if is_tagged then
      walk.set, walk.highest = 0, tagged_last(walk.tag)
    else
      local last = call('ZRANGE', SETS[walk.state], '-1', '-1', 'WITHSCORES')
      walk.set, walk.highest = RUNNING, last[2] or '0'
      if walk.state == ENDED then walk.set = ENDED end
    end
    return walk
  end

  local set
  set, walk.token, walk.highest, walk.score, walk.id =
    string.match(cursor, '^([0-4]) (%d+) (%S+) (%S+) (.*)$')
  if not set or (set == '0') ~= is_tagged then error({ err = 'ERR this is no cursor' }) end
  walk.set = tonumber(set)
  return walk
end

-- An id that is too long for one is cut, and stands behind all that begin with the same.
local function selection_cursor(walk)
  local id = walk.id
  if #id > 255 then id = string.sub(id, 1, 255) .. '\255' end
  return table.concat({ walk.set, walk.token, walk.highest, walk.score, id }, ' ')
end

-- The jobs that are next in the set of the walk. And are these the last ones?
local function selection_page(walk, limit)
  local set, before_ms = SETS[walk.set], tonumber(ARGV[5])
  local highest = walk.set == walk.state and tonumber(walk.highest) or now_ms
  if walk.asks and walk.state == RUNNING then highest = math.huge end
  if before_ms > 0 then highest = math.min(highest, before_ms - 1) end

  local first = rank_after(set, walk.score, walk.id)
  local last = call('ZCOUNT', set, '-inf', highest) - 1
  if first > last then return {}, true end

  local page = {}
  local found = call('ZRANGE', set, first, math.min(last, first + limit - 1), 'WITHSCORES')
  for i = 1, #found, 2 do
    page[#page + 1] = { id = found[i], set = set, score = found[i + 1] }
  end
  return page, last < first + limit
end

-- Is a job with this attempt one of them? Says in which state it is, and whether anything was asked
-- of it while it ran.
local function selection_has(walk, job, text)
  local attempt, before_ms = attempt_read(text), tonumber(ARGV[5])
  local reason = attempt and attempt.reason or ''
  job.state = job_state(job.id, job.set, time_of(job.score), text)
  job.asked = attempt and is_marked(attempt)

  if walk.state ~= 0 and job.state ~= walk.state then return false end
  if before_ms > 0 and time_of(job.score) >= before_ms then return false end
  if is_past(job.set, time_of(job.score)) then return false end
  if not string.find(reason, ARGV[4], 1, true) then return false end

  local is_left = job.state == RUNNING and not walk.asks
  local takes_all = walk.takes_new or is_left or not attempt
  return takes_all or tonumber(attempt.token) <= tonumber(walk.token)
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
local function selection_take(walk, page, mark_of, read_more)
  local limit, ids = math.min(tonumber(ARGV[6]), BATCH), {}
  for i, job in ipairs(page) do ids[i] = job.id end
  local texts = #ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}

  for i, job in ipairs(page) do
    local n_asked = walk.asks and walk.n_running or 0
    if #walk.jobs + n_asked >= limit or walk.bytes + next_bytes > BYTES then return true end

    local id, set, text = job.id, job.set, texts[i] or ''
    walk.score, walk.id = job.score, id
    job.text = text
    local is_one = set and selection_has(walk, job, text)
    if is_one and (walk.set == 0 or job.state ~= RUNNING) then
      job.record, job.before = record_now(id, set, time_of(job.score))
      walk.bytes = walk.bytes + #(job.record or '') + #(job.before or '')
      is_one = walk.set ~= 0 or tagged_has(walk.tag, job)
    end

    if is_one and job.state == RUNNING then
      selection_meet(walk, id, text, mark_of)
    elseif is_one then
      table.insert(walk.jobs, job)
      if read_more then walk.bytes = walk.bytes + read_more(job) end
    end
  end
  return false
end

-- The jobs of this call, how many others run, and the next cursor; '': none is left. mark_of: what
-- is asked of a job that runs, if the call says so. read_more: reads what else is needed of one
-- that does not run, and says how many bytes that was; nil: nothing is. takes_new: by a tag also
-- those that were claimed since the first call.
local function selection_jobs(cursor, mark_of, read_more, takes_new)
  local walk, n_looked = selection_begin(cursor, takes_new), 0

  repeat
    local page, is_last
    if walk.set == 0 then
      page, is_last = tagged_page(walk, BATCH)
    else
      page, is_last = selection_page(walk, BATCH - n_looked)
    end
    local enough = selection_take(walk, page, mark_of, read_more)
    n_looked = n_looked + #page
    if is_last and not enough then
      local is_over = walk.set == 0 or walk.set == walk.state
      if is_over then return walk.jobs, walk.n_running, '' end
      walk.set, walk.score, walk.id = walk.state, '0', ''
    end
  until enough or n_looked == BATCH
  return walk.jobs, walk.n_running, selection_cursor(walk)
end
