-- Looks for jobs with a defect, in a page of one of the queue's keys, for entries of the index and
-- reports without a job, and for series without a next moment.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts batches defects lives record
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index batches report errors p
-- ARGV    database
--         key             its end: jobs, due, run, dead, kept, attempts, next, report,
--                         errors, batches or index
--         page            0: the first
--         count           of the page, about
-- RETURNS now_us
--         next_page       0: that was the last
--         n_looked_at
--         n_bytes         of these
--         n_unreadable    records of a format that this version cannot read
--         then per defect: [id, what]
--           none          its record is in no set
--           many          it is in more than one
--           record        it is in a set, and has no record
--           attempt       nothing else is left of it
--           holder        it runs, and has no attempt
--           tag           it has one, holds a unique key, is a series or of one, and the index
--                         does not say so
--           entry         of the index, which stands in the place of the id: no record says it
--           next          it does not run, and a record waits for the end of its run
--           report        there is one of a job that has none, or is gone
--           error         it has none, or is gone, and an entry of errors is left
--           parts         it is a group, and says another number of parts than it has
--           batch         it is the name of one that is closed and has no job left, and has not
--                         ended
--           each is found once: none, many, holder, tag, parts in jobs, record in the first of its
--           sets, attempt in attempts, next in next, report in report, error in errors, batch in
--           batches, entry in index
--         then per series that has no moment left, and gets others from nobody: [id, 'dry',
--         calendar], calendar being its name; found in attempts
-- ERRORS  Redis's own
-- COST    O(1) a job, and the page's bytes

-- All but the jobs with a record that are in one set, and not in run.
local function suspects(key, ids)
  local out = {}
  for first = 1, key == JOBS and #ids or 0, BATCH do
    local last = math.min(first + BATCH - 1, #ids)
    local due = call('ZMSCORE', DUE, unpack(ids, first, last))
    local run = call('ZMSCORE', RUN, unpack(ids, first, last))
    local dead = call('ZMSCORE', DEAD, unpack(ids, first, last))
    local kept = call('ZMSCORE', KEPT, unpack(ids, first, last))
    for i = 1, last - first + 1 do
      local n = (due[i] and 1 or 0) + (dead[i] and 1 or 0) + (kept[i] and 1 or 0)
      if run[i] or n ~= 1 then out[#out + 1] = ids[first + i - 1] end
    end
  end
  local is_other = key ~= JOBS and key ~= INDEX and key ~= NEXT and key ~= REPORT
    and key ~= FAILURES and key ~= BATCHES
  for _, id in ipairs(is_other and ids or {}) do
    if call('HEXISTS', JOBS, id) == 0 then out[#out + 1] = id end
  end
  return out
end

-- The calendar of a series that looks for its next moments each minute; nil: it is none of these.
local function dry_calendar(id, text)
  local attempt = string.find(text, 'a=0', 1, true) and attempt_read(text)
  if not attempt or not attempt_more(attempt, 'a') or not call('ZSCORE', DUE, id) then
    return nil
  end

  local _, _, _, _, attributes = record_header(call('HGET', JOBS, id) or '')
  if not attributes or not attributes.C or string.find(attributes.S or '', '[ ,]0$') then
    return nil
  end
  return string.match(attributes.C, '^%S+')
end

local function scan(key, page, count)
  local is_hash = key == JOBS or key == ATTEMPTS or key == NEXT or key == REPORT
    or key == FAILURES or key == BATCHES
  if is_hash then
    return call('HSCAN', key, page, 'COUNT', count)
  end
  return call('ZSCAN', key, page, 'COUNT', count)
end

local function main()
  local key, ids, bytes, unreadable, found, dry = BASE .. ARGV[2], {}, 0, 0, {}, {}
  local page = scan(key, ARGV[3], ARGV[4])
  for i = 1, #page[2], 2 do
    local id, value = page[2][i], page[2][i + 1]
    if not ids[id] then
      ids[#ids + 1], ids[id] = id, true
      bytes = bytes + #id + #value
      if key == JOBS and not record_header(value) then unreadable = unreadable + 1 end
      if key == JOBS and #index_missing(id, value) > 0 then found[#found + 1] = { id, 'tag' } end
      if key == JOBS and parts_differ(id, value) then found[#found + 1] = { id, 'parts' } end
      if key == NEXT and not next_stays(id) then found[#found + 1] = { id, 'next' } end
      if key == REPORT and not entry_stays(key, id) then found[#found + 1] = { id, 'report' } end
      if key == FAILURES and not entry_stays(key, id) then found[#found + 1] = { id, 'error' } end
      if key == BATCHES and batch_is_over(id) then found[#found + 1] = { id, 'batch' } end
      local calendar = key == ATTEMPTS and dry_calendar(id, value)
      if calendar then dry[#dry + 1] = { id, 'dry', calendar } end
      if key == INDEX and index_is_stray(id) then found[#found + 1] = { id, 'entry' } end
    end
  end

  local out = { now_us, tonumber(page[1]), #ids, bytes, unreadable, unpack(found) }
  for _, id in ipairs(suspects(key, ids)) do
    local what, sets = defect_of(id)
    if what and (key == JOBS or key == (sets[1] or ATTEMPTS)) then out[#out + 1] = { id, what } end
  end
  for _, series in ipairs(dry) do out[#out + 1] = series end
  return out
end
return answer(main)
