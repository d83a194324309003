-- SPDX-License-Identifier: MIT
-- The hash report: what the holder of a job has last said of it, its progress or its result. The
-- attempt of such a job says o=1: a report lives as long as the attempt, through retries and
-- death, and goes with it.
--
-- USES    attempts types

local REPORT = BASE .. 'report'
local REPORT_MAX = 65536

-- The jobs of this call whose reports leave.
local report_ids = {}

-- The report of a job leaves, which has one.
local function report_forget(id) report_ids[#report_ids + 1] = id end

-- What is left of a job goes: its life ends, or begins anew. attempt: its last one; or it has none.
local function report_ends(id, attempt)
  if attempt and attempt_more(attempt, 'o') then report_forget(id) end
end

-- The same by the text of the attempt, '' if it has none.
local function report_ends_by(id, text)
  if string.byte(text) == 50 then report_ends(id, attempt_read(text)) end
end

-- Before the first write.
local function report_check()
  if #report_ids > 0 then check_hash(REPORT) end
end

-- With the attempts.
local function report_leave()
  if #report_ids > 0 then write('HDEL', REPORT, unpack(report_ids)) end
end

-- What the attempt says of a job beside this: that it has a report.
local function report_noted(more) return more and more .. ',o=1' or 'o=1' end

-- The report of a job; nil: it has none. text: its attempt, '' if it has none.
local function report_of(id, text)
  local attempt = string.byte(text) == 50 and attempt_read(text)
  return attempt and attempt_more(attempt, 'o') and call('HGET', REPORT, id) or nil
end
