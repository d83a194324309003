-- Ends jobs that are done.
--
-- KIND    batch
-- ROLE    listener
-- USES    answer attempts index jobs leases sets types
-- KEYS    due none
-- READS   attempts run jobs
-- WRITES  index run jobs attempts
-- ARGV    database
--         holder
--         then per job: id, token
-- RETURNS now_us
--         then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local ids = {}
  check_hash(JOBS)
  for at = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local texts, ends = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))

  local out, done, marked = { now_us }, {}, {}
  for at = 3, #ARGV, 2 do
    local i = #out
    if ends[i] and is_held(texts[i], ARGV[at + 1]) then
      out[i + 1], done[#done + 1] = 1, ids[i]
      if string.byte(texts[i]) == 50 then marked[#marked + 1] = ids[i] end
    else
      out[i + 1] = 'EGONE'
    end
  end

  if #marked > 0 then index_leave(marked) end
  set_remove(RUN, done)
  jobs_delete(done)
  attempts_delete(done)
  return out
end
return answer(main)
