-- Moves the jobs of a selection that wait to dead: all of them, or those with a tag or of a batch,
-- or some of them. To be called again with the cursor of its answer, until that is empty.
--
-- KIND    single
-- ROLE    producer
-- USES    answer kills selections types
-- KEYS    due none
-- READS   due run dead jobs attempts next seq index batches report errors
-- WRITES  due run dead attempts report errors t jobs next index batches ends notice
-- ARGV    database
--         state           1 waiting; 0: likewise, if a tag is named
--         tag             those with this tag; 'b NAME': those of this batch; '': any
--         reason          part of the reasons that they have; '': any
--         before_ms       only those that are due before this; 0: all
--         limit           kill at most so many
--         cursor          '' at first, then that of the last answer
--         running         0: those that run are counted, and left
--         why             the reason of their death
-- RETURNS now_us
--         n               jobs killed
--         n_running       jobs of the selection that run
--         cursor          text: for the next call; '': none is left
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; it looks at 100 at most, and at none after 256 KiB of records

local function main()
  local is_one = string.find(ARGV[2], '^[01]$')
  if not is_one then error({ err = 'ERR only jobs that wait are killed' }) end
  check_zset(DEAD)

  local jobs, n_running, cursor = selection_jobs(ARGV[7])
  local n = 0
  for _, job in ipairs(jobs) do
    if job.state == WAITING and job.record then
      job_is_killed(job, job.text, ARGV[9])
      n = n + 1
    end
  end
  kills_put()
  return { now_us, n, n_running, cursor }
end
return answer(main)
