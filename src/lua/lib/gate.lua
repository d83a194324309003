-- SPDX-License-Identifier: MIT
-- What the settings make of due jobs, whatever asks for them.
--
-- USES    forward limits settings

-- Until when no settings say that anything is given out.
local UNTIL_TOLD = 9007199254740992

-- nil: jobs are given out. Otherwise until when they are not (0: the oldest were forwarded); how
-- many were forwarded, could not be read and were lost; the rows of those that were skipped or
-- died; the ids of all that have left; and how many triggers of these expired by being read. The
-- holder - only forwards. Behind it, if jobs are given out: how many may start, by lib/limits.lua.
local function settings_obey(text, token)
  local _, values = settings_read(text or '1 ')
  local paused_ms = time_of(string.match(values.paused or '', '^%d+$'))
  if paused_ms > now_ms then return { paused_ms, 0, 0, 0, {}, {}, 0 } end
  if values.forward then return forward_jobs(values, token) end
  if ARGV[2] == '-' then return { UNTIL_TOLD, 0, 0, 0, {}, {}, 0 } end
  return nil, limits_of(values)
end
