-- Gives due jobs to a holder: those named, or the oldest. A job that cannot be read dies, with the
-- reason.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts due ids record sets tokens triggers types
-- KEYS    due
-- READS   due run dead jobs attempts seq
-- WRITES  due seq run dead attempts t
-- ARGV    database
--         holder
--         lease_ms
--         limit           how many of the oldest; 0: those named
--         then per job: id
-- RETURNS now_us
--         oldest_due_ms   due, and not taken; 0: none
--         next_due_ms     the first that is due later; 0: none
--         n_unreadable    moved to dead
--         n_lost          members without a record, removed
--         then per job: row (then its place among the ids; 0: it was not named)
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100 jobs, or the batch of reads that passed 256 KiB

-- What is due of the ids of ARGV, or the oldest: ids, due times, and the place of each id in ARGV.
local function due_jobs(limit)
  local ids, dues, place = {}, {}, {}
  if limit > 0 then
    local most = math.min(limit, BATCH)
    local found = call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, most)
    for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], time_of(found[i + 1]) end
  elseif #ARGV > 4 then
    local scores = call('ZMSCORE', DUE, unpack(ARGV, 5, math.min(#ARGV, BATCH + 4)))
    for i, score in ipairs(scores) do
      local id = ARGV[i + 4]
      if score and tonumber(score) <= now_ms and not place[id] then
        ids[#ids + 1], dues[#dues + 1], place[id] = id, time_of(score), i
      end
    end
  end
  return ids, dues, place
end

local function main()
  local holder, lease_ms, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  local ids, dues, place = due_jobs(limit)
  local token, until_ms, claimed_us = token_last(), now_ms + lease_ms, decimal(now_us)
  local run_score = decimal(until_ms)
  check_zset(DUE)
  check_zset(RUN)
  check_zset(DEAD)

  local rows, run, attempts, dead, taken, triggers, lost = {}, {}, {}, {}, {}, {}, {}
  local at, chunk, bytes = 1, 1, 0
  while at <= #ids and bytes <= BYTES do
    local last = math.min(#ids, at + chunk - 1)
    local records = call('HMGET', JOBS, unpack(ids, at, last))
    local texts = call('HMGET', ATTEMPTS, unpack(ids, at, last))

    for i = at, last do
      local id, record = ids[i], records[i - at + 1]
      local len, tries = record_header(id_valid(id) and record or '')
      local attempt = attempt_read(texts[i - at + 1]) or { try = 0, token = '0', reason = '' }
      attempt.tries, attempt.claimed_us = tries or 0, claimed_us
      attempt.due_ms, attempt.holder = dues[i], holder
      bytes = bytes + #(record or '')
      taken[#taken + 1], triggers[#triggers + 1] = id, TRIGGER .. id

      if len then
        token = token + 1
        attempt.try, attempt.token = attempt.try + 1, decimal(token)
      elseif record then
        attempt.reason = 'stored data is in a format this version cannot read'
        dead[#dead + 1], dead[#dead + 2] = now_ms, id
      else
        lost[#lost + 1] = id
      end
      if record then
        attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
      end
      if len then
        run[#run + 1], run[#run + 2] = run_score, id
        rows[#rows + 1] = { id, RUNNING, until_ms, attempts[#attempts], record, place[id] or 0 }
      end
    end
    at, chunk = last + 1, chunk * 2
  end

  set_remove(DUE, taken)
  if #run > 0 then token_keep(token) end
  set_add(RUN, run)
  set_add(DEAD, dead)
  attempts_put(attempts)
  attempts_delete(lost)
  if limit > 0 and #triggers > 0 then write('DEL', unpack(triggers)) end

  local oldest_due_ms, next_due_ms = next_due()
  return { now_us, oldest_due_ms, next_due_ms, #dead / 2, #lost, unpack(rows) }
end
return answer(main)
