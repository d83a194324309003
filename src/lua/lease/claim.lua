-- Gives due jobs to a holder: those named, or the oldest, no more than the settings allow; or
-- forwards the oldest, if the settings say so. A job that cannot be read dies, with the reason. Of
-- a series that is due it gives the job of that moment, and puts the series back to its next one;
-- of a group it gives the job of its parts.
--
-- KIND    single
-- ROLE    listener
-- USES    answer claims due gate limits series tokens triggers
-- SELDOM  claim_begin claim_meets claim_checks claim_leaves claim_ends settings_obey limits_room
--         limits_close
-- KEYS    due none
-- READS   due run dead kept jobs attempts seq conf stream list t index batches rate report errors p
-- WRITES  stream list due seq run dead kept jobs attempts p report errors index batches ends t rate
--         notice
-- ARGV    database
--         holder          -: it gets no job, and only forwards
--         lease_ms
--         limit           how many of the oldest; 0: those named; -1: likewise, but if one of them
--                         has a priority, as many of the oldest
--         then per job: id
-- RETURNS now_us
--         oldest_due_ms   due, and not taken; 0: none
--         next_due_ms     the first that is due later; 0: none
--         n_unreadable    moved to dead, since they cannot be read
--         n_lost          members without a record, removed
--         gate_ms         until when no more jobs are given out, and the times above are 0; 0: more
--                         are
--         n_forwarded     moved to a stream or a list, whatever was asked for: none is then running
--         then per job: row (then its place among the ids; 0: it was not named)
--           id            that of the job which a series or a group has made, not its own
--           state         2: it is the holder's; or, as its attributes L, R and G say, without
--                         another try: 3, it is dead, also one that cannot be read; 0, it was
--                         skipped, and is gone. 1: no job, but a series that has few
--                         moments left, by its calendar; its header alone, and 0 behind
--                         it: refill gives it more
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100 jobs, or the batch of reads that passed 256 KiB

-- What is due of the ids of ARGV: ids, due times, and the place of each id in ARGV; those that are
-- due in a millisecond; and whether one has a priority.
local function due_named()
  local ids, dues, place, early, has_priority = {}, {}, {}, {}, false
  local scores = call('ZMSCORE', DUE, unpack(ARGV, 5, math.min(#ARGV, BATCH + 4)))
  for i, score in ipairs(scores) do
    local id = ARGV[i + 4]
    if score and tonumber(score) <= now_ms and not place[id] then
      ids[#ids + 1], dues[#dues + 1], place[id] = id, time_of(score), i
      has_priority = has_priority or tonumber(score) % 1 > 0
    elseif score and time_of(score) == now_ms + 1 then
      early[#early + 1] = id
    end
  end
  return ids, dues, place, early, has_priority
end

-- The oldest that are due, no more than so many: ids and due times.
local function due_oldest(most)
  local ids, dues = {}, {}
  local found = call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], time_of(found[i + 1]) end
  return ids, dues
end

-- From version 8 on Redis itself expires a key when its time has come, and not when that is past,
-- so its event may come a millisecond before the job is due. Another trigger makes another event.
-- Where it cannot be set, alarm and sweep find the job.
local function triggers_set_again(ids)
  for _, id in ipairs(ids) do redis.pcall('SET', TRIGGER .. id, '1', 'PXAT', now_ms + 1, 'NX') end
end

local function main()
  local limit = tonumber(ARGV[4])
  local ids, dues, most, place, early = {}, {}, math.min(limit, BATCH), nil, nil
  if limit <= 0 and #ARGV > 4 then
    local has_priority
    ids, dues, place, early, has_priority = due_named()
    if limit < 0 and has_priority then most, place = #ids, nil end
  end
  if most > 0 then ids, dues = due_oldest(most) end
  local stored = claim_check()
  local seq, settings = stored[1], stored[2]
  local token = token_last(seq)

  local obeyed, limits
  if settings or ARGV[2] == '-' then obeyed, limits = settings_obey(settings, token) end
  if obeyed then
    local gate_ms, n_forwarded, n_unreadable, n_lost, rows = unpack(obeyed)
    local oldest_due_ms, next_due_ms = 0, 0
    if gate_ms == 0 then oldest_due_ms, next_due_ms = next_due() end
    return { now_us, oldest_due_ms, next_due_ms, n_unreadable, n_lost, gate_ms, n_forwarded,
      unpack(rows) }
  end

  local n_found, gate_ms = #ids, 0
  if n_found == 0 then limits = nil end
  if limits then
    for i = n_found, limits_room(limits, n_found) + 1, -1 do ids[i], dues[i] = nil, nil end
  end

  local function place_of(id) return place and place[id] or 0 end
  local rows, taken, n_unreadable, n_lost = claim_jobs(token, ids, dues, place_of)
  if limit > 0 then triggers_delete(taken) end
  if early then
    triggers_set_again(early)
  end
  if spawned then spawned.arm() end
  if limits then gate_ms = limits_close(limits, rows, #ids < n_found) end

  local oldest_due_ms, next_due_ms = 0, 0
  if gate_ms == 0 then oldest_due_ms, next_due_ms = next_due() end
  if spawned then spawned.tell(next_due_ms) end
  return { now_us, oldest_due_ms, next_due_ms, n_unreadable, n_lost, gate_ms, 0, unpack(rows) }
end
return answer(main)
