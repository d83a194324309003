-- Deletes the jobs of a selection: those of a state, or with a tag, or some of them; and asks those
-- that run to stop, if that is wanted. To be called again with the cursor of its answer, until that
-- is empty.
--
-- KIND    single
-- ROLE    producer
-- USES    answer index marks removal reports selections
-- KEYS    due none
-- READS   due run dead jobs attempts next seq index report
-- WRITES  due run dead jobs attempts report next t index notice
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead; 0: any, if a tag is named
--         tag             those with this tag; '': any
--         reason          part of the reasons; '': any
--         before_ms       only those that are due, or died, before this; 0: all
--         limit           delete, and ask, at most so many
--         cursor          '' at first, then that of the last answer
--         running         1: those that run are asked to stop; 0: they are not
-- RETURNS now_us
--         n               jobs deleted
--         n_running       jobs of the selection that run: they are left, or asked that had not been
--         cursor          text: for the next call; '': none is left
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; it looks at 100 at most, and at none after 256 KiB of records
local function main()
  local jobs, n_running, cursor = selection_jobs(ARGV[7], function() return 'c=1' end)
  local leaves, ids, entries = { [DUE] = {}, [RUN] = {}, [DEAD] = {} }, {}, {}
  local followed = {}

  for i, job in ipairs(jobs) do
    ids[i] = job.id
    report_ends_by(job.id, job.text)
    table.insert(leaves[job.set], job.id)
    if job.entries then
      for _, entry in ipairs(job.entries) do entries[#entries + 1] = entry end
    else
      index_entries(entries, job.id, job.record)
    end
    if job.before then
      followed[#followed + 1] = job.id
      index_entries(entries, job.id, job.before)
    end
  end
  jobs_remove(leaves, ids, entries, followed)
  stops_put()
  return { now_us, #ids, n_running, cursor }
end
return answer(main)
