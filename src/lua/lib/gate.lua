-- SPDX-License-Identifier: MIT
-- The gate of the queue: while it is closed no job is given out, whatever asks for it.
--
-- USES    settings

-- Until when it is closed, by the text of the settings; 0: it is open.
local function gate_of(text)
  local _, values = settings_read(text)
  local paused_ms = time_of(string.match(values.paused or '', '^%d+$'))
  return paused_ms > now_ms and paused_ms or 0
end
