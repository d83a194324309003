-- Reads the triggers of due jobs, which makes Redis expire them and publish that at once, and
-- claims the jobs whose owner its caller is, no more than the settings allow; or forwards what is
-- due, if the settings say so. Of a series it claims the job of its moment, and of a group that of
-- its parts, as claim does.
--
-- KIND    single
-- ROLE    listener
-- USES    answer claims due gate limits owners series tokens triggers
-- SELDOM  claim_begin claim_meets claim_checks claim_leaves claim_ends settings_obey limits_room
--         limits_close
-- KEYS    due none
-- READS   due run dead kept jobs attempts seq conf stream list t index batches rate report errors p
-- WRITES  stream list due seq run dead kept jobs attempts p report errors index batches ends t rate
--         notice
-- ARGV    database
--         holder          -: it gets no job, and only forwards
--         lease_ms
--         limit           how many jobs it may claim
--         cursor_ms       the last due time that was touched
--         rank            of the caller, among the listeners
--         n_members       the listeners; at most 1: the caller owns every job
--         everyone        1: reads the triggers of all due jobs, not only of those that it claims
--         look            of how many jobs to come it names the due times; at most 100
-- RETURNS now_us
--         oldest_due_ms   due, and not taken; 0: none
--         next_due_ms     the first that is due later; 0: none
--         n_unreadable    moved to dead, since they cannot be read
--         n_lost          members without a record, removed
--         gate_ms         until when no more jobs are given out, nor triggers read, and the times
--                         above are 0; 0: more are
--         n_forwarded     moved to a stream or a list, whosever they were: none is then running
--         n_read          triggers read
--         n_there         of these, still there
--         n_expired       triggers that this reading expired
--         cursor_ms       for the next call
--         more            1: more jobs of the caller may be due
--         known_ms        it named all due times up to this one; 0: it did not look
--         coming          text: these due times; a + stands before those with a job of the caller
--         then per job: row (then 1 if this reading expired all that it read, else 0)
--           id            that of the job which a series or a group has made, not its own
--           state         2: it is the holder's; or, as its attributes L, R and G say, without
--                         another try: 3, it is dead, also one that cannot be read; 0, it was
--                         skipped, and is gone. 1: no job, but a series that has few
--                         moments left, by its calendar; its header alone, and 0 behind
--                         it: refill gives it more
--           row           the id alone: forwarding took it, and this reading expired all it read
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N), and O(log N) a job; at most 100 jobs, or the batch of reads that passed 256 KiB

local RANK, N_MEMBERS = tonumber(ARGV[6]), tonumber(ARGV[7])

local function is_own(id) return N_MEMBERS <= 1 or owner_of(id, N_MEMBERS) == RANK end

-- What is due behind the cursor: the ids and due times of the jobs to claim, the triggers to read,
-- the last due time, whether the caller may have more, and how many of its jobs it has seen. What
-- it does not claim it will ask for by age, and the triggers of these are not read: their events
-- would make it ask twice.
local function due_jobs(cursor_ms, limit)
  local after = '(' .. decimal(cursor_ms)
  local found = call('ZRANGEBYSCORE', DUE, after, now_ms, 'WITHSCORES', 'LIMIT', 0, BATCH)
  local ids, dues, triggers = {}, {}, {}
  local last_ms, more, n_own = cursor_ms, #found == BATCH * 2, 0

  for i = 1, #found, 2 do
    local id, due_ms = found[i], time_of(found[i + 1])
    local own = is_own(id)
    local claims = own and #ids < limit
    if own then n_own = n_own + 1 end
    if claims then ids[#ids + 1], dues[#dues + 1] = id, due_ms end
    if claims or ARGV[8] == '1' then triggers[#triggers + 1] = TRIGGER .. id end
    more = more or own and not claims
    last_ms = due_ms
  end
  return ids, dues, triggers, last_ms, more, n_own
end

-- The due times of the next jobs, as many as asked for.
local function coming_jobs(most)
  local first = '(' .. decimal(now_ms)
  local last = decimal(now_ms + NEAR)
  local found = call('ZRANGEBYSCORE', DUE, first, last, 'WITHSCORES', 'LIMIT', 0, most)
  local known_ms = now_ms + NEAR
  if #found == 0 then
    found = call('ZRANGEBYSCORE', DUE, first, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #found > 0 then known_ms = time_of(found[2]) end
  elseif #found == 2 * most then
    known_ms = time_of(found[#found])
  end

  local words, at = {}, nil
  for i = 1, #found, 2 do
    local due = decimal(time_of(found[i + 1]))
    if due ~= at then words[#words + 1], at = due, due end
    if words[#words] == due and is_own(found[i]) then words[#words] = '+' .. due end
  end
  return known_ms, table.concat(words, ' ')
end

local function main()
  local limit, look = tonumber(ARGV[4]), math.min(BATCH, tonumber(ARGV[9]))
  local cursor_ms = math.min(tonumber(ARGV[5]), now_ms)
  local stored = claim_check()
  local seq, settings = stored[1], stored[2]
  local token = token_last(seq)

  local obeyed, limits
  if settings or ARGV[2] == '-' then obeyed, limits = settings_obey(settings, token) end
  if obeyed then
    local gate_ms, n_forwarded, n_unreadable, n_lost, rows, taken, n_expired = unpack(obeyed)
    local oldest_due_ms, next_due_ms, known_ms, coming = 0, 0, 0, ''
    if gate_ms == 0 then oldest_due_ms, next_due_ms = next_due() end
    if gate_ms == 0 and look > 0 then known_ms, coming = coming_jobs(look) end
    if n_expired == #taken then
      for _, id in ipairs(taken) do rows[#rows + 1] = id end
    end
    return { now_us, oldest_due_ms, next_due_ms, n_unreadable, n_lost, gate_ms, n_forwarded, #taken,
      0, n_expired, cursor_ms, oldest_due_ms > 0 and 1 or 0, known_ms, coming, unpack(rows) }
  end

  local room, gate_ms = limit, 0
  if limits then room = limits_room(limits, limit) end
  local ids, dues, triggers, last_ms, more, n_own = due_jobs(cursor_ms, room)
  local is_kept_back = room < math.min(limit, n_own)
  local n_there, n_expired = triggers_read(triggers)

  -- For a key the time is that of the script's start. Where that was a moment too early, the next
  -- call reads the same triggers again.
  if n_there == 0 then cursor_ms = last_ms end

  local expired = n_expired == #triggers and 1 or 0
  local function expired_of() return expired end
  local rows, taken, n_unreadable, n_lost = claim_jobs(token, ids, dues, expired_of)
  if n_there > 0 then triggers_delete(taken) end
  if spawned then spawned.arm() end
  if limits then gate_ms = limits_close(limits, rows, is_kept_back) end

  local oldest_due_ms, next_due_ms, known_ms, coming = 0, 0, 0, ''
  if gate_ms == 0 then oldest_due_ms, next_due_ms = next_due() end
  if gate_ms == 0 and look > 0 then known_ms, coming = coming_jobs(look) end
  more = gate_ms == 0 and (more or #taken < #ids) and 1 or 0
  if spawned then spawned.tell(next_due_ms) end
  return { now_us, oldest_due_ms, next_due_ms, n_unreadable, n_lost, gate_ms, 0, #triggers,
    n_there, n_expired, cursor_ms, more, known_ms, coming, unpack(rows) }
end
return answer(main)
