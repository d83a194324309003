-- SPDX-License-Identifier: MIT
-- Moves due jobs to a stream or a list, where other programs take them.
--
-- USES    attempts ends errors ids index jobs kept limits lives marks record reports series sets
--         settings tokens triggers unique verdict

-- Where the target is full, it is looked at again so much later.
local FULL_MS = 100

-- What the settings say of the target: whether it is a stream, its key, and how long it is.
local function target_of(values)
  local kind, key = string.match(values.forward, '^(%a+):(.+)$')
  if kind == 'stream' then return true, key, call('XLEN', key) end
  if kind == 'list' then return false, key, call('LLEN', key) end
  error({ err = 'ERR ' .. CONF .. ' has a target that this version does not know' })
end

-- The groups of a stream that is missing; its first entry comes after them.
local function groups_make(key, groups)
  for group in string.gmatch(groups, '[^,]+') do
    write('XGROUP', 'create', key, group, '0', 'MKSTREAM')
  end
end

-- The fields of its headers: name, value, name, value...; and of how many parts its body is.
local function header_fields(attributes)
  local fields = {}
  for _, header in ipairs(attributes and attributes.h or {}) do
    local name, value = string.match(header, '^([!-<>-z|~]+)=([^%z]*)$')
    if name and #name <= 64 and #value <= 255 then
      fields[#fields + 1], fields[#fields + 2] = 'header:' .. name, value
    end
  end
  if attributes and attributes.p then
    fields[#fields + 1], fields[#fields + 2] = 'parts', attributes.p
  end
  return fields
end

local function target_add(is_stream, key, kind, jobs)
  local elements = {}
  for i, job in ipairs(jobs) do
    if is_stream then
      write('XADD', key, '*', 'id', job[1], 'due_ms', job[2], 'try', job[3], 'token', job[4],
        'body', job[5], unpack(job.headers))
    elseif kind == 'id' then
      elements[i] = job[1]
    elseif kind == 'body' then
      elements[i] = job[5]
    else
      elements[i] = table.concat(job, ' ')
    end
  end
  if #elements > 0 then write('LPUSH', key, unpack(elements)) end
end

-- Of due jobs: those to be moved (id, due, try, token, body); who is gone, they and those that are
-- skipped or were cancelled, and their entries in the index; those that die, with their attempts,
-- and how many of them cannot be read; those without a record; and the rows of those that are
-- skipped or die, but of one whose id is none. Reads as many as a call may.
local function forward_read(ids, dues, token)
  local read = { jobs = {}, gone = {}, entries = {}, dead = {}, attempts = {}, lost = {},
    taken = {}, rows = {}, n_unreadable = 0 }
  local at, chunk, bytes = 1, 1, 0

  -- One that leaves the queue: as verdict says, cancelled (true), or with this token. Is it kept?
  local function forward_keeps(id, record, before, last_token, due_ms, verdict, child)
    local how = verdict == SKIPPED and ENDED_SKIPPED or ENDED_CANCELLED
    if not verdict then
      how = ENDED_FORWARDED
      before = { token = token_text(last_token), holder = ARGV[2], try = before.try + 1,
        claimed_us = decimal(now_us), reason = before.reason, more = before.more }
    end
    return kept_end(id, record, how, before, due_ms, child)
  end

  -- One that does not leave for the target: verdict is nil if it cannot be read.
  local function refuse(id, due_ms, record, verdict, before, tries, more, child)
    local text = ''
    if verdict ~= SKIPPED then
      if more then more = failure_by(id, more, before.try, verdict or NOT_READ) end
      text = attempt_words(before.token .. ' ' .. ARGV[2], before.try, tries or 0, decimal(now_us),
        due_ms, verdict or NOT_READ, more)
      if child then spawned.stores(child) end
      read.dead[#read.dead + 1], read.dead[#read.dead + 2] = now_ms, id
      read.attempts[#read.attempts + 1], read.attempts[#read.attempts + 2] = id, text
      key_entry(read.entries, id, record)
    end
    if not verdict then read.n_unreadable = read.n_unreadable + 1 end
    if id_valid(id) then
      local state, score = verdict_state(verdict or NOT_READ, 0, due_ms)
      read.rows[#read.rows + 1] = { id, state, score, text, verdict and record or '', 0 }
    end
  end

  while at <= #ids and bytes <= BYTES do
    local last = math.min(#ids, at + chunk - 1)
    local records = call('HMGET', JOBS, unpack(ids, at, last))
    local texts = call('HMGET', ATTEMPTS, unpack(ids, at, last))

    for i = at, last do
      local id, record, due_ms = ids[i], records[i - at + 1], dues[i]
      local len, tries, _, _, attributes = record_header(id_valid(id) and record or '')
      local before, child = attempt_read(texts[i - at + 1]) or NO_ATTEMPT, nil
      local goes, verdict, more = mark_cancels(before), nil, nil
      bytes = bytes + #(record or '')
      read.taken[#read.taken + 1] = id

      if attributes and (attributes.S or attributes.P) then
        local job = { id = id, record = record, len = len, tries = tries,
          attributes = attributes, due_ms = due_ms, before = before }
        if not spawned then series_begin(read.attempts) end
        token = token + 1
        id, record, len, tries, attributes, due_ms, child = spawned.moment(job, token)
        if child then before, bytes = NO_ATTEMPT, bytes + #record end
      end
      if attributes and not goes then verdict, more = verdict_of(attributes, due_ms, before) end
      if before.more and not len then more = failures_noted(before) end
      if before.more and has_report(before) then more = report_noted(more) end

      if len and not verdict and not goes then
        if not child then token = token + 1 end
        read.jobs[#read.jobs + 1] = { id, decimal(due_ms), decimal(before.try + 1),
          token_text(token), string.sub(record, len + 1), headers = header_fields(attributes) }
      elseif record and not goes then
        refuse(id, due_ms, record, verdict, before, tries, more, child)
        if verdict ~= SKIPPED then death_note(id, attributes) end
      elseif id and not record then
        read.lost[#read.lost + 1] = id
        life_ends(id, before)
      end
      if record and goes or len and (not verdict or verdict == SKIPPED) then
        local is_kept = forward_keeps(id, record, before, token, due_ms, goes or verdict, child)
        if not is_kept and not child then read.gone[#read.gone + 1] = id end
        index_entries(read.entries, id, record)
        life_ends(id, before)
      end
    end
    at, chunk = last + 1, chunk * 2
  end
  return read, token
end

-- Moves the oldest due jobs, as many as a call may, the target has room for and rate allows. It
-- adds first and removes last: a full Redis, a target of another type or a missing right refuses it
-- whole, and the jobs wait. Returns what settings_obey() does.
local function forward_jobs(values, token)
  local is_stream, key, length = target_of(values)
  local room = math.min(BATCH, (tonumber(values.forward_max) or math.huge) - length)
  if room < 1 then return { now_ms + FULL_MS, 0, 0, 0, {}, {}, 0 } end

  local limits = limits_of(values)
  local has_rate = limits and limits.n_starts
  if has_rate then room = rate_room(limits, room) end
  if room < 1 then return { rate_until(limits), 0, 0, 0, {}, {}, 0 } end

  local found = call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, room)
  local ids, dues = {}, {}
  for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], time_of(found[i + 1]) end
  local read, last_token = forward_read(ids, dues, token)
  index_check(read.entries)
  kept_check()
  lives_check()
  failures_check()
  if spawned then spawned.check(read.rows) end

  local triggers, n_moved = {}, #read.jobs
  for i, id in ipairs(read.taken) do triggers[i] = TRIGGER .. id end
  local n_there, n_expired = triggers_read(triggers)
  local is_missing = is_stream and length == 0 and n_moved > 0 and call('EXISTS', key) == 0
  if is_missing then groups_make(key, values.forward_groups or '') end
  target_add(is_stream, key, values.forward_element, read.jobs)
  set_remove(DUE, read.taken)
  if spawned then spawned.go_on() end
  if n_moved > 0 or spawned then token_keep(last_token) end
  set_add(DEAD, read.dead)
  kept_put()
  leftovers_delete(read.gone)
  if spawned then spawned.puts() end
  attempts_put(read.attempts)
  attempts_delete(read.lost)
  lives_leave()
  index_remove(read.entries)
  if spawned then spawned.enters() end
  failures_put()
  ends_tell()
  if n_there > 0 then write('DEL', unpack(triggers)) end
  if spawned then spawned.arm() end
  if has_rate then rate_keep(limits, n_moved) end
  if spawned then spawned.tell(0) end
  return { 0, n_moved, read.n_unreadable, #read.lost, read.rows, read.taken, n_expired }
end
