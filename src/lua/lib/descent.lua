-- SPDX-License-Identifier: MIT
-- The jobs that a series has made, as the index knows them: an entry 's SERIES ID' of each. They
-- end with their series, when that is cancelled.
--
-- USES    index marks next removal rows

-- At so many jobs of a series a cancel looks, the youngest first. Those that are done have no
-- entry: there are more than these only where most runs fail.
local DESCENT_MAX = 1000

-- Those that wait, or run: of each its id, set, score, record, and the one before that, which its
-- run had, if its lease is over. Returns how many bytes were read, too.
local function series_jobs(series)
  local first, jobs, bytes = 's ' .. series .. ' ', {}, 0
  local entries = call('ZREVRANGEBYLEX', INDEX, '(s ' .. series .. '!', '[' .. first,
    'LIMIT', 0, DESCENT_MAX)

  for at = 1, #entries, BATCH do
    local ids = {}
    for i = at, math.min(#entries, at + BATCH - 1) do
      ids[#ids + 1] = string.sub(entries[i], #first + 1)
      bytes = bytes + #entries[i]
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

-- Their series goes: those that wait go, too; those that run are asked to stop, or go by themselves
-- when their run ends that is not done.
local function descent_ends(jobs, running)
  for _, job in ipairs(jobs) do
    local row = job_row(job.id, job.set, job.score, '')
    if row[2] == WAITING then
      job_goes(job, row[4])
    elseif row[2] == RUNNING then
      local attempt = mark_ask(job.id, row[4], running and 'c=1' or 'c=2')
      if attempt and running then stop_tell(job.id, attempt) end
    end
  end
end
