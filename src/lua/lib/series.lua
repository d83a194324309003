-- SPDX-License-Identifier: MIT
-- Series: an id with several moments (attribute S). A series waits in due like a job and never
-- runs: at its moment a claim makes the job ID~TOKEN of it, which is ordinary in all else, and puts
-- the series back to its next moment. The attempt of a series says n=N: so many moments have been.
--
-- USES    attempts created due index jobs kept notice record sets tokens triggers

-- What changes in this call, and the functions for it, so that a call which meets no series makes
-- none; nil: it has met none. first_ms: when the first job is due that is due later; dues: due
-- time, id... of the series that go on; attempts: id, text... of these; records: id, record... of
-- the jobs that were made; entries: theirs; ended: ids of the series that leave nothing, and
-- strays: the entries of all that have ended.
local spawned

-- How many moments passed unseen between this one, with the number n, and now.
local function moments_passed(rule, due_ms, n)
  local last_ms = rule.until_ms > 0 and math.min(now_ms, rule.until_ms) or now_ms
  local passed = math.max(0, math.floor((last_ms - due_ms) / rule.every_ms))
  if rule.times > 0 then passed = math.min(passed, rule.times - n) end
  return math.max(0, passed)
end

-- What the attribute S says; nil: it is not known to this version.
local function series_rule(text)
  local policy, until_ms, times, kind, data =
    string.match(text, '^([aln]o?) (%d+) (%d+) ([es]) ([%d,]+)$')
  if not policy then return nil end

  local rule = { catch_up = string.sub(policy, 1, 1), until_ms = tonumber(until_ms),
    times = tonumber(times), no_overlap = #policy == 2 }
  if kind == 'e' then
    rule.every_ms = tonumber(data)
    return rule.every_ms and rule.every_ms > 0 and rule or nil
  end
  rule.stages = { 0 }
  for stage in string.gmatch(data, '%d+') do rule.stages[#rule.stages + 1] = tonumber(stage) end
  return rule
end

-- The moment that a series is at: when it is, its number, and when the next one is (nil: it was the
-- last one).
local function series_moment(rule, due_ms, n)
  local next_ms
  n = n + 1
  if rule.every_ms then
    if rule.catch_up ~= 'a' then
      local passed = moments_passed(rule, due_ms, n)
      due_ms, n = due_ms + passed * rule.every_ms, n + passed
    end
    next_ms = due_ms + rule.every_ms
  else
    local before, after = rule.stages[n], rule.stages[n + 1]
    next_ms = before and after and due_ms + after - before
  end

  local is_over = next_ms and rule.until_ms > 0 and next_ms > rule.until_ms
  if is_over or rule.times > 0 and n >= rule.times then next_ms = nil end
  return due_ms, n, next_ms
end

-- Does one of its last hundred jobs wait or run?
local function series_overlaps(id)
  local first = 's ' .. id .. ' '
  local entries = call('ZREVRANGEBYLEX', INDEX, '(s ' .. id .. '!', '[' .. first, 'LIMIT', 0, BATCH)
  if #entries == 0 then return false end

  for i, entry in ipairs(entries) do entries[i] = string.sub(entry, #first + 1) end
  for _, set in ipairs({ DUE, RUN }) do
    for _, score in ipairs(call('ZMSCORE', set, unpack(entries))) do
      if score then return true end
    end
  end
  return false
end

-- The bytes of a length.
local function length_text(len)
  if len < 128 then return string.char(len) end
  return string.char(128 + len % 128, math.floor(len / 128))
end

-- The record of the job of a moment: that of its series, which it names with the number of the
-- moment (attribute O), and without what is the series' own: its moments, and its key.
local function series_record(record, len, id, n)
  local at, own = 3, id .. ' ' .. decimal(n)
  for flag = 0, 2 do
    if bit.band(string.byte(record, 2), bit.lshift(1, flag)) ~= 0 then
      at = string.find(record, '[%z\1-\127]', at) + 1
    end
  end
  local first, parts = at, {}
  at = string.find(record, '[%z\1-\127]', at) + 1
  own = 'O' .. length_text(#own) .. own

  while at <= len do
    local letter, size, high = string.byte(record, at, at + 2)
    local stop = at + 2 + size
    if size >= 128 then stop = at + 3 + size - 128 + high * 128 end
    if own and letter > 79 then
      parts[#parts + 1], own = own, nil
    end
    if not string.find(string.char(letter), '[OSU]') then
      parts[#parts + 1] = string.sub(record, at, stop - 1)
    end
    at = stop
  end

  local text = table.concat(parts)
  return string.sub(record, 1, first - 1) .. length_text(#text) .. text ..
    string.sub(record, len + 1)
end

-- A series is due: it goes on to its next moment, or has ended. Returns the job of this moment, or
-- false: none is made. nil: what it says is not known to this version.
local function series_fires(series, token)
  local id, before, attributes = series.id, series.before, series.attributes
  local rule = series_rule(attributes.S)
  if not rule then return nil end

  local count = tonumber(attempt_more(before, 'n')) or 0
  local due_ms, n, next_ms = series_moment(rule, series.due_ms, count)
  local late_ms = tonumber(string.match(attributes.L or '', '%d+')) or 60000
  local is_late = rule.catch_up == 'n' and not rule.stages and now_ms - due_ms > late_ms
  local is_over = rule.until_ms > 0 and due_ms > rule.until_ms
  local makes = not is_over and not is_late and not (rule.no_overlap and series_overlaps(id))

  local _, tries = record_header(series.record)
  local attempt = { token = token, holder = '-', try = before.try, tries = tries,
    claimed_us = decimal(now_us), due_ms = due_ms, reason = '', more = 'n=' .. decimal(n) }
  if not makes then
    attempt.token, attempt.claimed_us = before.token, before.claimed_us or '0'
  else
    attempt.try = math.min(4294967295, before.try + 1)
  end

  if next_ms then
    local m = #spawned.dues
    spawned.dues[m + 1], spawned.dues[m + 2] = next_ms, id
    spawned.priorities[id] = attributes.Q and string.byte(attributes.Q)
    spawned.attempts[m + 1], spawned.attempts[m + 2] = id, attempt_text(attempt)
  else
    if not kept_end(id, series.record, ENDED_DONE, attempt, due_ms) then
      spawned.ended[#spawned.ended + 1] = id
    end
    index_entries(spawned.strays, id, series.record)
  end
  if not makes then return false end

  local record = series_record(series.record, series.len, id, n)
  record = created_put(record, nil)
  local job = { id = id .. '~' .. token, record = record, due_ms = due_ms }
  job.len, job.tries, _, _, job.attributes = record_header(record)
  if #job.id > 255 then job.len, job.attributes = nil, nil end
  return job
end

-- A series is at one of its moments: what its claim goes on with, the job of that moment: its id
-- (nil: there is none), record, length of the header, tries, attributes, due time, and all of it.
local function series_moment_job(job, token)
  local child = series_fires(job, token_text(token))
  if child == nil then return job.id, job.record, nil, nil, nil, job.due_ms end
  if not child then return nil end
  return child.id, child.record, child.len, child.tries, child.attributes, child.due_ms, child
end

-- The job of a moment stays, as one that runs or is dead.
local function series_stores(job)
  local m = #spawned.records
  spawned.records[m + 1], spawned.records[m + 2] = job.id, job.record
  index_entries(spawned.entries, job.id, job.record)
end

-- Before the first write.
local function series_check()
  index_check(spawned.entries)
  index_check(spawned.strays)
end

-- When those that are due have left due.
local function series_go_on()
  set_add(DUE, due_entries(spawned.dues, spawned.priorities))
end

-- When the jobs are in their sets.
local function series_puts()
  jobs_put(spawned.records)
  jobs_delete(spawned.ended)
  attempts_put(spawned.attempts)
  attempts_delete(spawned.ended)
end

local function series_enters()
  index_remove(spawned.strays)
  index_add(spawned.entries)
end

-- After the triggers of those that were due have gone.
local function series_arm()
  for i = 1, #spawned.dues, 2 do
    local due_ms, id = spawned.dues[i], spawned.dues[i + 1]
    trigger_set(id, due_ms, false)
  end
end

-- The last step.
local function series_tell() notice_due(spawned.first_ms, spawned.dues) end

-- A call has met its first series.
local function series_begin()
  spawned = { first_ms = first_to_come(), dues = {}, attempts = {}, records = {}, entries = {},
    ended = {}, strays = {}, priorities = {} }
  spawned.moment, spawned.stores = series_moment_job, series_stores
  spawned.check, spawned.go_on, spawned.puts = series_check, series_go_on, series_puts
  spawned.enters, spawned.arm, spawned.tell = series_enters, series_arm, series_tell
end
