-- SPDX-License-Identifier: MIT
-- Notices to the listeners of the queue: at most one a script, last.
--
-- USES    ids

-- It only helps others, so its errors are ignored. ARGV[1] begins with the number of the database,
-- which Redis's channels do not have.
local function notice_publish(text)
  redis.pcall('PUBLISH', BASE .. 'notice:' .. string.match(ARGV[1], '^%d+'), text)
end

-- 'HEAD ID ID...': HEAD is a due time before all that were to come (first_ms; 0: none did), or 0;
-- the ids are due now. entries: due time, id, due time, id...
local function notice_due(first_ms, entries)
  local head, ids = 0, {}
  for i = 1, #entries, 2 do
    local due_ms = entries[i]
    if due_ms <= now_ms then
      if id_valid(entries[i + 1]) then ids[#ids + 1] = entries[i + 1] end
    elseif (first_ms == 0 or due_ms < first_ms) and (head == 0 or due_ms < head) then
      head = due_ms
    end
  end
  if head > 0 or #ids > 0 then notice_publish(decimal(head) .. ' ' .. table.concat(ids, ' ')) end
end
