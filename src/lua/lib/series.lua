-- SPDX-License-Identifier: MIT
-- Series: an id with several moments (attribute S). A series waits in due like a job and never
-- runs: at its moment a claim makes the job ID~TOKEN of it, which is ordinary in all else, and puts
-- the series back to its next moment. The attempt of a series says n=N: so many moments have been.
--
-- A group makes one job, and is gone: lib/groups.lua.
--
-- USES    attempts due groups index jobs kept made notice sets tokens triggers

-- What changes in this call, and the functions for it, so that a call which meets no series makes
-- none; nil: it has met none. dues: due time, id... of the series that go on; attempts: id, text...
-- of these, among those of the call; records: id, record... of the jobs that were made; entries:
-- theirs; ended: ids of the series that leave nothing, and strays: the entries of all that have
-- ended; short: rows of the calendars that have few moments.
local spawned

-- The reply of a claim shows a calendar of which fewer moments than this are left.
local FEW = 8

-- How many moments passed unseen between this one, with the number n, and now.
local function moments_passed(rule, due_ms, n)
  local last_ms = rule.until_ms > 0 and math.min(now_ms, rule.until_ms) or now_ms
  local passed = math.max(0, math.floor((last_ms - due_ms) / rule.every_ms))
  if rule.times > 0 then passed = math.min(passed, rule.times - n) end
  return math.max(0, passed)
end

-- What the attribute S says, which has the form that lib/attributes.lua asks for; nil: it names no
-- period.
local function series_rule(text)
  local policy, until_ms, times, kind, data =
    string.match(text, '^(%a+) (%d+) (%d+) (%a) ([%d,]+)$')
  local rule = { catch_up = string.sub(policy, 1, 1), until_ms = tonumber(until_ms),
    times = tonumber(times), no_overlap = #policy == 2 }
  if kind == 'e' then
    rule.every_ms = tonumber(data)
    return rule.every_ms and rule.every_ms > 0 and rule or nil
  end
  local list = {}
  for ms in string.gmatch(data, '%d+') do list[#list + 1] = tonumber(ms) end
  if kind == 's' then
    table.insert(list, 1, 0)
    rule.stages = list
  else
    rule.moments, rule.is_whole = list, list[#list] == 0
  end
  return rule
end

-- Of a calendar: the moment that it is at, its number, when the next one is (nil: there is none, or
-- none is known), and how many are left.
local function calendar_moment(rule, due_ms, n)
  local last_ms = rule.until_ms > 0 and math.min(now_ms, rule.until_ms) or now_ms
  local next_ms, left = nil, 0
  for _, ms in ipairs(rule.moments) do
    local may_pass = rule.catch_up ~= 'a' and (rule.times == 0 or n < rule.times)
    if ms > due_ms and ms <= last_ms and may_pass then
      due_ms, n = ms, n + 1
    elseif ms > due_ms then
      next_ms, left = next_ms or ms, left + 1
    end
  end
  return due_ms, n, next_ms, left
end

-- The moment that a series is at: when it is, its number, and when the next one is (nil: it was the
-- last one); then, of a calendar that is to be told, how many are left.
local function series_moment(rule, due_ms, n)
  local next_ms, left
  n = n + 1
  if rule.every_ms then
    if rule.catch_up ~= 'a' then
      local passed = moments_passed(rule, due_ms, n)
      due_ms, n = due_ms + passed * rule.every_ms, n + passed
    end
    next_ms = due_ms + rule.every_ms
  elseif rule.moments then
    due_ms, n, next_ms, left = calendar_moment(rule, due_ms, n)
  else
    local before, after = rule.stages[n], rule.stages[n + 1]
    next_ms = before and after and due_ms + after - before
  end

  local is_over = next_ms and rule.until_ms > 0 and next_ms > rule.until_ms
  if is_over or rule.times > 0 and n >= rule.times then return due_ms, n, nil end
  if not left or rule.is_whole or left >= FEW then return due_ms, n, next_ms end
  return due_ms, n, next_ms or now_ms + LOOK_MS, left
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

-- A series is due: it goes on to its next moment, or has ended. Returns the job of this moment, or
-- false: none is made. nil: what it says is not known to this version.
local function series_fires(series, token)
  local id, before, attributes = series.id, series.before, series.attributes
  local rule = series_rule(attributes.S)
  if not rule then return nil end

  local count = tonumber(attempt_more(before, 'n')) or 0
  local is_paused, is_dry = attempt_more(before, 'z'), attempt_more(before, 'a')
  local due_ms, n, next_ms, left
  if is_dry then
    due_ms, n, next_ms, left = before.due_ms, count, now_ms + LOOK_MS, 0
    if rule.is_whole then next_ms = nil end
  else
    due_ms, n, next_ms, left = series_moment(rule, series.due_ms, count)
  end
  local late_ms = tonumber(string.match(attributes.L or '', '%d+')) or 60000
  local is_late = rule.catch_up == 'n' and not rule.stages and now_ms - due_ms > late_ms
  local is_over = rule.until_ms > 0 and due_ms > rule.until_ms
  local passes = is_dry or is_paused or is_over or is_late
  local makes = not passes and not (rule.no_overlap and series_overlaps(id))

  local attempt = { token = token, holder = '-', try = before.try, tries = series.tries,
    claimed_us = decimal(now_us), due_ms = due_ms, reason = '', more = 'n=' .. decimal(n) }
  if is_paused then attempt.more = attempt.more .. ',z=1' end
  if left == 0 then attempt.more = attempt.more .. ',a=0' end
  if not makes then
    attempt.token, attempt.claimed_us = before.token, before.claimed_us or '0'
  else
    attempt.try = math.min(4294967295, before.try + 1)
  end

  if next_ms then
    local m, k, text = #spawned.dues, #spawned.attempts, attempt_text(attempt)
    spawned.dues[m + 1], spawned.dues[m + 2] = next_ms, id
    spawned.priorities[id] = attributes.Q and string.byte(attributes.Q)
    spawned.attempts[k + 1], spawned.attempts[k + 2] = id, text
    if left then
      local header = string.sub(series.record, 1, series.len)
      spawned.short[#spawned.short + 1] = { id, WAITING, next_ms, text, header, 0 }
    end
  else
    if not kept_end(id, series.record, ENDED_DONE, attempt, due_ms) then
      spawned.ended[#spawned.ended + 1] = id
    end
    index_entries(spawned.strays, id, series.record)
  end
  if not makes then return false end

  return made_job(series, n, token, due_ms)
end

-- A group is due: its parts become one job, and it is gone. nil: it has none, or what stands in
-- their place are none; then it dies.
local function group_fires(group, token)
  local parts = parts_read(group.id)
  if not parts or #parts == 0 then return nil end

  spawned.ended[#spawned.ended + 1] = group.id
  index_entries(spawned.strays, group.id, group.record)
  parts_forget(group.id, group.record)
  return made_job(group, group_made(group.before) + 1, token, group.due_ms, parts)
end

-- A series is at one of its moments, or a group is due: what its claim goes on with, the job that
-- it makes: its id (nil: there is none), record, length of the header, tries, attributes, due time,
-- and all of it.
local function series_moment_job(job, token)
  local fires = job.attributes.P and group_fires or series_fires
  local child = fires(job, token_text(token))
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

-- Before the first write. rows: those of the reply, which get those of the calendars.
local function series_check(rows)
  for _, row in ipairs(spawned.short) do rows[#rows + 1] = row end
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
  attempts_delete(spawned.ended)
  parts_leave()
end

-- Those that were made first: they may be the last ones of a batch that their series was in.
local function series_enters()
  index_add(spawned.entries)
  index_remove(spawned.strays)
end

-- After the triggers of those that were due have gone.
local function series_arm() triggers_set(spawned.dues, false) end

-- The last step. next_ms: when the first job is due that is due later; 0: nobody has looked. A
-- series that is due then is named, since it may be the first.
local function series_tell(next_ms)
  if #spawned.dues == 0 then return end
  if next_ms == 0 then
    local _, first_ms = next_due()
    next_ms = first_ms
  end
  notice_due(next_ms + 1, spawned.dues)
end

-- A call has met its first series. attempts: id, text... of the call, which get those of the
-- series, too.
local function series_begin(attempts)
  spawned = { dues = {}, attempts = attempts, records = {}, entries = {}, ended = {}, strays = {},
    short = {}, priorities = {} }
  spawned.moment, spawned.stores = series_moment_job, series_stores
  spawned.check, spawned.go_on, spawned.puts = series_check, series_go_on, series_puts
  spawned.enters, spawned.arm, spawned.tell = series_enters, series_arm, series_tell
end
