-- SPDX-License-Identifier: MIT
-- The hash report: what the holder of a job has last said of it, its progress or its result. The
-- attempt of such a job says o=1: a report lives as long as the attempt, through retries, death and
-- the time for which a job is kept, and goes with it (lib/lives.lua).
--
-- USES    attempts lives types

local REPORT_MAX = 65536

-- Before the first write. entries: those that are to be put.
local function report_check(entries)
  if #entries > 0 then check_hash(REPORT) end
end

-- entries: id, report, id, report...
local function report_put(entries)
  if #entries > 0 then write('HSET', REPORT, unpack(entries)) end
end

-- What the attempt says of a job beside this: that it has a report.
local function report_noted(more) return more and more .. ',o=1' or 'o=1' end

-- The report of a job; nil: it has none. text: its attempt, '' if it has none.
local function report_of(id, text)
  local attempt = string.byte(text) == 50 and attempt_read(text)
  return attempt and has_report(attempt) and call('HGET', REPORT, id) or nil
end
