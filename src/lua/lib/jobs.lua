-- SPDX-License-Identifier: MIT
-- The hash jobs, and all that goes with a job.
--
-- USES    sets attempts

-- entries: id, record, id, record...
local function jobs_put(entries)
  if #entries > 0 then write('HSET', JOBS, unpack(entries)) end
end

-- Deletes all that is stored of the jobs of a set, apart from their triggers.
local function jobs_delete(set, ids)
  set_remove(set, ids)
  if #ids > 0 then write('HDEL', JOBS, unpack(ids)) end
  attempts_delete(ids)
end
