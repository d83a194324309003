-- Deletes the jobs of a selection: those of a state, or with a tag, or some of them; and asks those
-- that run to stop, if that is wanted. Those that ask for it (attribute K) are kept, as cancelled;
-- those that are kept are deleted. With a series or a group go the jobs of it, as by cancel. To be
-- called again with the cursor of its answer, until that is empty.
--
-- KIND    single
-- ROLE    producer
-- USES    answer descent marks record removal selections
-- KEYS    due none
-- READS   due run dead kept jobs attempts next seq index batches report errors
-- WRITES  due run dead kept jobs attempts report errors next t p index batches ends notice
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead, 4 kept; 0: any but kept, if a tag is
--                           named
--         tag             those with this tag; 'b NAME': those of this batch; '': any
--         reason          part of the reasons; '': any
--         before_ms       only those that are due, died, or are kept until before this; 0: all
--         limit           delete, and ask, at most so many
--         cursor          '' at first, then that of the last answer
--         running         1: those that run are asked to stop; 0: they are not
-- RETURNS now_us
--         n               jobs deleted, but for those that went with their series alone
--         n_running       jobs of the selection that run: they are left, or asked that had not been
--         cursor          text: for the next call; '': none is left
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; it looks at 100 at most, and at none after 256 KiB of records

-- A job is one of the selection. Returns how many bytes were read for it.
local function descent_read(job)
  local _, _, _, _, attributes = record_header(job.record or '')
  local makes = attributes and (attributes.S or attributes.P)
  if job.set == KEPT or not makes then return 0 end

  local bytes
  job.descent, bytes = series_jobs(job.id)
  return bytes
end

local function main()
  local function mark_of() return 'c=1' end
  local jobs, n_running, cursor = selection_jobs(ARGV[7], mark_of, descent_read, true)

  for _, job in ipairs(jobs) do
    job_goes(job, job.text)
    if job.descent then descent_ends(job.descent, ARGV[8] == '1') end
  end
  jobs_remove()
  stops_put()
  return { now_us, #jobs, n_running, cursor }
end
return answer(main)
