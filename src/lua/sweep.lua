-- Takes jobs back from leases that ended; one whose tries are used up dies.
-- KEYS    1 due
-- ARGV    1 database
-- RETURNS now us, jobs taken back, of them dead, 1 if there is more
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100
local function main()
  local ended = call('ZRANGEBYSCORE', RUN, '-inf', now, 'WITHSCORES', 'LIMIT', 0, BATCH)
  local ids, dues, dead, held, lost = {}, {}, {}, {}, {}
  find('')
  for i = 1, #ended, 2 do
    local id, over = ended[i], ms(ended[i + 1])
    local h = parse(call('HGET', ATTEMPTS, id))
    ids[#ids + 1] = id
    if call('HEXISTS', JOBS, id) == 1 then
      local set = (h and used_up(h)) and dead or dues
      set[#set + 1], set[#set + 2] = over, id
      if h then
        h.due, h.reason = over, 'the lease ended'
        held[#held + 1], held[#held + 2] = id, text_of(h)
      end
    else lost[#lost + 1] = id end
  end
  rem(RUN, ids)
  add(DUE, dues)
  add(DEAD, dead)
  hold(held)
  forget(lost)
  wake(0, dues)
  return { now_us, #ids, #dead / 2, #ended == BATCH * 2 and 1 or 0 }
end
return guard(main)
