-- SPDX-License-Identifier: MIT
-- The hash report: what the holder of a job has last said of it, its progress or its result. The
-- attempt of such a job says o=1: a report lives as long as the attempt, through retries, death and
-- the time for which a job is kept, and goes with it.
--
-- USES    attempts types

local REPORT = BASE .. 'report'
local REPORT_MAX = 65536

-- The jobs of this call whose reports leave, and those that are kept, with what they have.
local report_ids, report_kept = {}, {}

-- The report of a job leaves, which has one.
local function report_forget(id) report_ids[#report_ids + 1] = id end

-- A job has ended and is kept: so is its report, its result.
local function report_keep(id) report_kept[id] = true end

-- The life of a job ends, or begins again, and its report leaves. attempt: its last one; nil: it
-- has none.
local function report_ends(id, attempt)
  if attempt and attempt_more(attempt, 'o') then report_forget(id) end
end

-- The same by the text of the attempt, '' if it has none.
local function report_ends_by(id, text)
  if string.byte(text) == 50 then report_ends(id, attempt_read(text)) end
end

-- The same of jobs whose attempts were not read.
local function report_ends_of(ids)
  local texts = #ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  for i, id in ipairs(ids) do report_ends_by(id, texts[i] or '') end
end

-- Before the first write. entries: those that are to be put.
local function report_check(entries)
  if #report_ids > 0 or entries and #entries > 0 then check_hash(REPORT) end
end

-- entries: id, report, id, report...
local function report_put(entries)
  if #entries > 0 then write('HSET', REPORT, unpack(entries)) end
end

-- With the attempts.
local function report_leave()
  local ids = {}
  for _, id in ipairs(report_ids) do
    if not report_kept[id] then ids[#ids + 1] = id end
  end
  if #ids > 0 then write('HDEL', REPORT, unpack(ids)) end
end

-- What the attempt says of a job beside this: that it has a report.
local function report_noted(more) return more and more .. ',o=1' or 'o=1' end

-- The report of a job; nil: it has none. text: its attempt, '' if it has none.
local function report_of(id, text)
  local attempt = string.byte(text) == 50 and attempt_read(text)
  return attempt and attempt_more(attempt, 'o') and call('HGET', REPORT, id) or nil
end
