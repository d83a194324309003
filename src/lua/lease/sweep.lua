-- Takes back the jobs whose lease has ended; a job whose tries are used up dies.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts notice sets types
-- KEYS    due none
-- READS   run due dead attempts jobs
-- WRITES  run due dead attempts notice
-- ARGV    database
-- RETURNS now_us
--         n_taken         jobs taken back
--         n_dead          of these, dead
--         more            1: there are more
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100
local function main()
  local ended = call('ZRANGEBYSCORE', RUN, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, BATCH)
  local ids, dues, dead, attempts, lost = {}, {}, {}, {}, {}
  check_zset(DUE)
  check_zset(RUN)
  check_zset(DEAD)

  for i = 1, #ended, 2 do
    local id, end_ms = ended[i], time_of(ended[i + 1])
    local attempt = attempt_read(call('HGET', ATTEMPTS, id))
    ids[#ids + 1] = id
    if call('HEXISTS', JOBS, id) == 1 then
      local set = (attempt and tries_used_up(attempt)) and dead or dues
      set[#set + 1], set[#set + 2] = end_ms, id
      if attempt then
        attempt.due_ms, attempt.reason = end_ms, 'the lease ended'
        attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
      end
    else
      lost[#lost + 1] = id
    end
  end

  set_remove(RUN, ids)
  set_add(DUE, dues)
  set_add(DEAD, dead)
  attempts_put(attempts)
  attempts_delete(lost)
  notice_due(0, dues)
  return { now_us, #ids, #dead / 2, #ended == BATCH * 2 and 1 or 0 }
end
return answer(main)
