-- Shows a page of the jobs with a tag, or of a batch, bodies included, by their ids, whatever their
-- state.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer index pages
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index errors
-- ARGV    database
--         tag             'b NAME': those of this batch
--         limit
--         after_id        of the last job of the page before; '' for the first page
-- RETURNS now_us
--         more            1: there are more
--         then per job: row (then its entry in errors)
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100 jobs, or the one that passed 256 KiB
local function main()
  return page_of_index(index_start(ARGV[2]), math.min(tonumber(ARGV[3]), BATCH), ARGV[4])
end
return answer(main)
