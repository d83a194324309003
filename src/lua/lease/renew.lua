-- Makes leases longer, or shorter.
--
-- KIND    batch, urgent
-- ROLE    listener
-- USES    answer leases limits marks sets unique
-- KEYS    due none
-- READS   attempts run jobs index
-- WRITES  run notice
-- ARGV    database
--         holder
--         then per job: id, token, lease_ms
--           lease_ms      from now
-- RETURNS now_us
--         then per job: until_ms (-until_ms: it is asked to stop) | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, run, is_shorter = { now_us }, {}, {}, false

  local held, is_met, ends = attempts_held(3)
  for at = 3, #ARGV, 3 do
    local id, _, lease_ms = unpack(ARGV, at, at + 2)
    local reply = 'EGONE'
    if held[#out] and not key_is_lost(id, held[#out]) then
      local until_ms = now_ms + tonumber(lease_ms)
      ids[#ids + 1] = id
      is_shorter = is_shorter or until_ms < tonumber(ends[#out])
      run[#run + 1], run[#run + 2] = until_ms, id
      reply = mark_stops(held[#out]) and -until_ms or until_ms
    end
    out[#out + 1] = reply
  end

  set_remove(RUN, ids)
  set_add(RUN, run)
  local tells = is_met and is_shorter
  limits_tell(tells)
  return out
end
return answer(main)
