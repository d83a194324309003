-- Shows a page of one state, bodies included: waiting by due time, running by the end of the lease,
-- dead by the time of death, kept by until when they are; or of the series, by their ids, whatever
-- their state.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer errors ids next pages ranks record rows
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index errors
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead, 4 kept, 5 series
--         limit
--         after_score     of the last job of the page before; less Q/1024 if it has a priority Q
--         after_id        likewise; '' for the first page
-- RETURNS now_us
--         more            1: there are more
--         then per job: row (then its entry in errors; those of an invalid id are left out)
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100 jobs, or the one that passed 256 KiB
local function main()
  local limit = math.min(tonumber(ARGV[3]), BATCH)
  if ARGV[2] == '5' then return page_of_index('r ', limit, ARGV[5]) end

  local set = ({ DUE, RUN, DEAD, KEPT })[tonumber(ARGV[2])]
  local first, out, bytes = rank_after(set, ARGV[4], ARGV[5]), { now_us, 0 }, 0
  if set == KEPT then first = math.max(first, call('ZCOUNT', set, '-inf', now_ms)) end

  repeat
    local page = call('ZRANGE', set, first, first + limit, 'WITHSCORES')
    for i = 1, #page, 2 do
      if id_valid(page[i]) then
        if #out > limit + 1 or bytes > BYTES then
          out[2] = 1
          return out
        end
        local id, score = page[i], time_of(page[i + 1])
        local record = record_now(id, set, score) or ''
        local shown = record_header(record) and record or ''
        local row = job_row(id, set, score, shown)
        row[6] = failures_of(id, row[4])
        out[#out + 1] = row
        bytes = bytes + #record
      end
    end
    first = first + limit + 1
  until #page <= 2 * limit
  return out
end
return answer(main)
