-- Shows a page of one state, bodies included: waiting by due time, running by the end of the lease,
-- dead by the time of death.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer ids record rows
-- KEYS    due none
-- READS   due run dead jobs attempts
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead
--         limit
--         after_score     of the last job of the page before
--         after_id        likewise; '' for the first page
-- RETURNS now_us
--         more            1: there are more
--         then per job: row (those of an invalid id are left out)
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100 jobs, or the one that passed 256 KiB

-- The rank of the first job behind the one with this score and id.
local function rank_after(set, score, id)
  if id == '' then return 0 end
  if time_of(call('ZSCORE', set, id)) == tonumber(score) then return call('ZRANK', set, id) + 1 end

  -- it is gone: look for its place among those of its score, which are in the order of their bytes
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if bytes_of(call('ZRANGE', set, middle, middle)[1]) > bytes_of(id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local function main()
  local set = ({ DUE, RUN, DEAD })[tonumber(ARGV[2])]
  local limit = math.min(tonumber(ARGV[3]), BATCH)
  local first, out, bytes = rank_after(set, ARGV[4], ARGV[5]), { now_us, 0 }, 0

  repeat
    local page = call('ZRANGE', set, first, first + limit, 'WITHSCORES')
    for i = 1, #page, 2 do
      if id_valid(page[i]) then
        if #out > limit + 1 or bytes > BYTES then
          out[2] = 1
          return out
        end
        local record = call('HGET', JOBS, page[i]) or ''
        local shown = record_header(record) and record or ''
        out[#out + 1] = job_row(page[i], set, time_of(page[i + 1]), shown)
        bytes = bytes + #record
      end
    end
    first = first + limit + 1
  until #page <= 2 * limit
  return out
end
return answer(main)
