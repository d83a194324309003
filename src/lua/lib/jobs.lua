-- SPDX-License-Identifier: MIT
-- The hash jobs: the record of each job.

-- entries: id, record, id, record...
local function jobs_put(entries)
  if #entries > 0 then write('HSET', JOBS, unpack(entries)) end
end

local function jobs_delete(ids)
  if #ids > 0 then write('HDEL', JOBS, unpack(ids)) end
end
