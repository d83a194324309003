-- SPDX-License-Identifier: MIT
-- The jobs that a series has made, as the index knows them: an entry 's SERIES ID' of each.
--
-- USES    index next

-- So many jobs of a series a call changes at most; more than that wait only where most runs fail.
local DESCENT_MAX = 500

-- Those that wait, or run, the oldest first: of each its id, set, score, record, and the one before
-- that, which its run had, if its lease is over. Returns how many bytes were read, too.
local function series_jobs(series)
  local first, jobs, bytes = 's ' .. series .. ' ', {}, 0
  local entries = call('ZRANGEBYLEX', INDEX, '[' .. first, '(s ' .. series .. '!')

  for at = 1, #entries, BATCH do
    if #jobs + BATCH > DESCENT_MAX then break end
    local ids = {}
    for i = at, math.min(#entries, at + BATCH - 1) do
      ids[#ids + 1] = string.sub(entries[i], #first + 1)
    end
    for _, set in ipairs({ DUE, RUN }) do
      for i, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
        local job = { id = ids[i], set = set, score = score and time_of(score) }
        if score then job.record, job.before = record_now(job.id, set, job.score) end
        if job.record and index_has(entries[at + i - 1], job.id, job.record) then
          jobs[#jobs + 1] = job
        end
        bytes = bytes + #(job.record or '') + #(job.before or '')
      end
    end
  end
  return jobs, bytes
end
