-- Deletes the jobs of a selection: those of a state, or with a tag, or some of them; and asks those
-- that run to stop, if that is wanted. Those that ask for it (attribute K) are kept, as cancelled;
-- those that are kept are deleted. To be called again with the cursor of its answer, until that
-- is empty.
--
-- KIND    single
-- ROLE    producer
-- USES    answer attempts index kept lives marks removal selections
-- KEYS    due none
-- READS   due run dead kept jobs attempts next seq index report errors
-- WRITES  due run dead kept jobs attempts report errors next t index ends notice
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead, 4 kept; 0: any but kept, if a tag is
--                           named
--         tag             those with this tag; '': any
--         reason          part of the reasons; '': any
--         before_ms       only those that are due, died, or are kept until before this; 0: all
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
  local leaves = { [DUE] = {}, [RUN] = {}, [DEAD] = {}, [KEPT] = {} }
  local ids, entries = {}, {}
  local followed = {}

  for i, job in ipairs(jobs) do
    ids[i] = job.id
    life_ends_by(job.id, job.text)
    table.insert(leaves[job.set], job.id)
    if job.set ~= KEPT then
      local due_ms = job.set == DUE and time_of(job.score) or nil
      kept_end(job.id, job.record, ENDED_CANCELLED, attempt_read(job.text), due_ms, job.before)
    end
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
