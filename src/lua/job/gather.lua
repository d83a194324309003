-- Adds parts to groups (attribute P), and makes the groups that are not there. A group is due when
-- no part has come for quiet_ms, when its first part is age_ms old, or when it has most parts; then
-- a claim makes one job of them, ID~TOKEN. Where a part would be more than most, or the body of the
-- job too large, that job is made first, to wait for its claim, and the group begins again.
--
-- KIND    batch, ids may repeat, needs memory
-- ROLE    producer
-- USES    answer attempts created due groups index jobs lives made notice record sets tokens
--         triggers types
-- KEYS    due none
-- READS   due run dead kept jobs attempts index report errors seq p
-- WRITES  index due jobs kept attempts report errors p seq t notice
-- ARGV    database
--         then per job: id, header, part
--           header        of its record, that is all but the body; with P, without S and U. Where
--                         there is a group, P must be the same, and all else does not count
--           part          any bytes, at most 1 MiB less 8
-- RETURNS now_us
--         then per job: row (no body; then 1: the group was made, 2: it has one part more)
--           | EEXIST | EINVAL
--           EEXIST        there is a job, a group with other limits, or one that is dead
--           EINVAL        the header is none of a group, the id is over 238 bytes, or the part is
--                         too large
--           fewer than asked: the jobs that were made are enough for one call; ask again for the
--           rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a group, O(1) a part, and the bytes of a job that is made

local ID_MAX = 238
local MOST_MAX = 1000
local PART_MAX = 1048568
local BODY_MAX = 1048576

-- What changes in this call: id, record... of groups and jobs that are made, with their entries;
-- due time, id... of these jobs; ids of jobs that were kept; the last token that was given.
local made = { records = {}, entries = {}, dues = {}, kept = {}, token = nil }

-- What a header asks for; nil: it is none of a group.
local function gather_limits(header)
  local len, tries, _, _, attributes = record_header(header)
  if len ~= #header or not attributes or attributes.S or attributes.U then return nil end

  local text = attributes.P
  local quiet_ms, most, age_ms = string.match(text or '', '^(%d+) (%d+) (%d+)$')
  quiet_ms, most, age_ms = tonumber(quiet_ms), tonumber(most), tonumber(age_ms)
  local are_known = quiet_ms and most <= MOST_MAX and quiet_ms + age_ms > 0
  if not are_known or math.max(quiet_ms, age_ms) > TEN_YEARS then return nil end
  return { text = text, tries = tries, quiet_ms = quiet_ms, most = most, age_ms = age_ms }
end

-- What the attempt says of the parts of a group; where that was lost, they are counted.
local function group_counts(group, attempt)
  group.n_parts, group.bytes = parts_said(attempt)
  if call('LLEN', PARTS .. group.id) == group.n_parts then return end

  local parts = call('LRANGE', PARTS .. group.id, '0', '-1')
  group.n_parts, group.bytes = #parts, #table.concat(parts)
end

-- The group of this id, as it is; with limits nil: it is to be made. What is put into it in this
-- call: frames.
local function group_read(id)
  local group = { id = id, frames = {}, n_parts = 0, bytes = 0, n_jobs = 0, token = '0',
    made_us = '0' }
  if #id > ID_MAX then
    group.refusal = 'EINVAL'
    return group
  end

  local set, score = set_of(id)
  if not set or set == KEPT then
    group.clears, group.is_kept = call('LLEN', PARTS .. id) > 0, set == KEPT
    return group
  end

  local record = call('HGET', JOBS, id)
  if set ~= DUE or not record_gathers(record) then
    group.refusal = 'EEXIST'
    return group
  end
  local attempt = attempt_read(call('HGET', ATTEMPTS, id)) or NO_ATTEMPT
  local len, tries, _, _, attributes = record_header(record)
  group.record, group.len, group.tries, group.limits = record, len, tries, attributes.P
  group.due_ms, group.until_ms = score, tonumber(attempt_more(attempt, 'w'))
  group.n_jobs, group.token = group_made(attempt), attempt.token
  group.made_us = attempt.claimed_us or '0'
  group_counts(group, attempt)
  return group
end

-- The first part of a group makes it; nobody knows any more what had this id.
local function group_make(group, header, limits)
  local record = created_put(header, nil)
  group.record, group.len, group.tries, group.limits = record, #record, limits.tries, limits.text
  if group.is_kept then
    made.kept[#made.kept + 1] = group.id
    lives_end({ group.id })
  end
  made.records[#made.records + 1], made.records[#made.records + 2] = group.id, record
  index_entries(made.entries, group.id, record)
end

-- Of all its parts a job is made that waits, and the group is empty. Returns how large the job is.
local function group_leaves(group)
  local parts = group.clears and {} or call('LRANGE', PARTS .. group.id, '0', '-1')
  for _, frame in ipairs(group.frames) do parts[#parts + 1] = frame end
  made.token = (made.token or token_last()) + 1
  group.n_jobs, group.token = group.n_jobs + 1, token_text(made.token)
  group.made_us = decimal(now_us)

  local due_ms = math.min(now_ms, group.due_ms)
  local job = made_job(group, group.n_jobs, group.token, due_ms, parts)
  made.records[#made.records + 1], made.records[#made.records + 2] = job.id, job.record
  made.dues[#made.dues + 1], made.dues[#made.dues + 2] = due_ms, job.id
  index_entries(made.entries, job.id, job.record)
  group.frames, group.n_parts, group.bytes, group.clears = {}, 0, 0, true
  group.due_ms, group.until_ms = nil, nil
  return #job.record
end

-- When it is due with one part more. What is due already stays so.
local function group_due(group, limits)
  if group.due_ms and group.due_ms <= now_ms then return group.due_ms end
  if group.n_parts >= limits.most then return now_ms end

  local until_ms = group.until_ms or math.huge
  return limits.quiet_ms > 0 and math.min(until_ms, now_ms + limits.quiet_ms) or until_ms
end

local function group_attempt(group)
  local counts = decimal(group.n_parts) .. ':' .. decimal(group.bytes)
  local more = 'n=' .. decimal(group.n_jobs) .. ',g=' .. counts
  if group.until_ms then more = more .. ',w=' .. decimal(group.until_ms) end
  return attempt_words(group.token .. ' -', group.n_jobs, group.tries, group.made_us, group.due_ms,
    '', more)
end

-- The answer for a part, and how many bytes of jobs were made.
local function group_add(group, header, part)
  local limits, bytes = gather_limits(header), 0
  if not limits or #part > PART_MAX then return 'EINVAL', 0 end
  if group.refusal then return group.refusal, 0 end
  if group.limits and group.limits ~= limits.text then return 'EEXIST', 0 end
  local is_new = not group.limits
  if is_new then group_make(group, header, limits) end

  local frame = length_text(#part) .. part
  if group.n_parts >= limits.most or group.bytes + #frame > BODY_MAX then
    bytes = group_leaves(group)
  end
  group.frames[#group.frames + 1] = frame
  group.n_parts, group.bytes = group.n_parts + 1, group.bytes + #frame
  if limits.age_ms > 0 then group.until_ms = group.until_ms or now_ms + limits.age_ms end

  local due_ms = group_due(group, limits)
  group.moves = group.moves or due_ms ~= group.due_ms
  group.due_ms = due_ms
  group.attempt = group_attempt(group)
  local shown = string.sub(group.record, 1, group.len)
  return { group.id, WAITING, due_ms, group.attempt, shown, is_new and 1 or 2 }, bytes
end

-- What changes of the groups: due time, id... of those that move; id, attempt... of all.
local function groups_changed(groups)
  local dues, attempts, changed = {}, {}, {}
  for _, group in ipairs(groups) do
    if #group.frames > 0 then
      changed[#changed + 1] = group
      attempts[#attempts + 1], attempts[#attempts + 2] = group.id, group.attempt
      if group.moves then dues[#dues + 1], dues[#dues + 2] = group.due_ms, group.id end
    end
  end
  return changed, dues, attempts
end

local function parts_put(groups)
  for _, group in ipairs(groups) do
    if group.clears then write('DEL', PARTS .. group.id) end
    write('RPUSH', PARTS .. group.id, unpack(group.frames))
  end
end

local function main()
  local out, groups, bytes = { now_us }, {}, 0
  local first_due = first_to_come()
  check_hash(ATTEMPTS)

  for at = 2, #ARGV, 3 do
    if bytes > BYTES then break end
    local id, header, part = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    if not groups[id] then
      groups[id] = group_read(id)
      groups[#groups + 1] = groups[id]
    end
    local reply, n_made = group_add(groups[id], header, part)
    out[#out + 1], bytes = reply, bytes + n_made
  end

  local changed, dues, attempts = groups_changed(groups)
  local priorities, all = {}, { unpack(made.dues) }
  for i = 1, #dues do all[#all + 1] = dues[i] end
  for i = 1, #made.records, 2 do
    priorities[made.records[i]] = record_priority(made.records[i + 1])
  end
  for _, group in ipairs(changed) do priorities[group.id] = record_priority(group.record) end

  index_check(made.entries)
  lives_check()
  index_add(made.entries)
  set_add(DUE, due_entries(all, priorities))
  jobs_put(made.records)
  set_remove(KEPT, made.kept)
  attempts_put(attempts)
  lives_leave()
  parts_put(changed)
  if made.token then token_keep(made.token) end
  triggers_set(dues, false)
  notice_due(first_due, all)
  return out
end
return answer(main)
