-- SPDX-License-Identifier: MIT
-- The hash jobs: the record of each job; and what else a job leaves behind.
--
-- USES    attempts

-- entries: id, record, id, record...
local function jobs_put(entries)
  if #entries > 0 then write('HSET', JOBS, unpack(entries)) end
end

local function jobs_delete(ids)
  if #ids > 0 then write('HDEL', JOBS, unpack(ids)) end
end

-- All that Redis has of jobs which are gone, beside their places in sets and in the index.
local function leftovers_delete(ids)
  jobs_delete(ids)
  attempts_delete(ids)
end
