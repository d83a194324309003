-- Takes due jobs for a holder: those named, or the oldest. What cannot be read dies, with its reason.
-- KEYS    1 due
-- ARGV    1 database, 2 holder, 3 lease ms, 4 how many of the oldest (0: those named); then ids
-- RETURNS now us, oldest due ms left (0: none), next due ms (0: none), unreadable jobs moved to dead, members without a
--         record removed; then per job taken: a row, with its place among the ids at the end (0: none)
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100 jobs, or the batch of reads that passed 256 KiB
local function chosen(limit)
  local ids, dues, place = {}, {}, {}
  if limit > 0 then
    local found = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, math.min(limit, BATCH))
    for i = 1, #found, 2 do ids[#ids + 1], dues[#dues + 1] = found[i], ms(found[i + 1]) end
  elseif #ARGV > 4 then
    for i, score in ipairs(call('ZMSCORE', DUE, unpack(ARGV, 5, math.min(#ARGV, BATCH + 4)))) do
      if score and tonumber(score) <= now and not place[ARGV[i + 4]] then
        ids[#ids + 1], dues[#dues + 1], place[ARGV[i + 4]] = ARGV[i + 4], ms(score), i
      end
    end
  end
  return ids, dues, place
end
local function main()
  local holder, lease, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  local ids, dues, place = chosen(limit)
  local token, till, claimed_us = last_token(), num(now + lease), num(now_us)
  find('')
  local out, run, held, dead, taken, keys, lost = { now_us, 0, 0, 0, 0 }, {}, {}, {}, {}, {}, {}
  local at, chunk, bytes = 1, 1, 0
  while at <= #ids and bytes <= BYTES do
    local last = math.min(#ids, at + chunk - 1)
    local recs, olds = call('HMGET', JOBS, unpack(ids, at, last)), call('HMGET', ATTEMPTS, unpack(ids, at, last))
    for i = at, last do
      local id, rec = ids[i], recs[i - at + 1]
      local len, tries = header(id_ok(id) and rec or '')
      local h = parse(olds[i - at + 1]) or { try = 0, token = '0', reason = '' }
      h.tries, h.claimed_us, h.due, h.holder = tries or 0, claimed_us, dues[i], holder
      bytes, taken[#taken + 1], keys[#keys + 1] = bytes + #(rec or ''), id, BASE .. 't:' .. id
      if len then token, h.try, h.token = token + 1, h.try + 1, num(token + 1)
      elseif rec then
        h.reason, dead[#dead + 1], dead[#dead + 2] = 'stored data is in a format this version cannot read', now, id
      else lost[#lost + 1] = id end
      if rec then held[#held + 1], held[#held + 2] = id, text_of(h) end
      if len then
        run[#run + 1], run[#run + 2] = till, id
        out[#out + 1] = { id, RUNNING, now + lease, held[#held], rec, place[id] or 0 }
      end
    end
    at, chunk = last + 1, chunk * 2
  end
  rem(DUE, taken)
  if #run > 0 then keep_token(token) end
  add(RUN, run)
  add(DEAD, dead)
  hold(held)
  forget(lost)
  if limit > 0 and #keys > 0 then write('DEL', unpack(keys)) end
  out[4], out[5], out[2], out[3] = #dead / 2, #lost, outlook()
  return out
end
return guard(main)
