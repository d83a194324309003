-- SPDX-License-Identifier: MIT
-- Notices to the listeners of the queue: at most one a script, last.
--
-- USES    channel due ids

local function notice_publish(text) channel_publish('notice', text) end

-- 'DUE ID DUE ID...' of the jobs that are due now (DUE is 0) or soon, or of one that is due before
-- all that were to come (first_ms; 0: none did). entries: due time, id, due time, id...
local function notice_of(first_ms, entries)
  local words, head_ms, head = {}, first_ms, nil
  local word, word_ms
  for i = 1, #entries, 2 do
    local due_ms, id = entries[i], entries[i + 1]
    if not id_valid(id) then id = '-' end
    if due_ms <= now_ms + NEAR then
      if due_ms ~= word_ms then
        word, word_ms = due_ms <= now_ms and '0' or decimal(due_ms), due_ms
      end
      words[#words + 1], words[#words + 2] = word, id
      if due_ms > now_ms then head_ms, head = due_ms, nil end
    elseif head_ms == 0 or due_ms < head_ms then
      head_ms, head = due_ms, id
    end
  end
  if head then words[#words + 1] = decimal(head_ms) .. ' ' .. head end
  local text = table.concat(words, ' ')
  notice_publish(text)
end

-- Most jobs are due later than others that wait, and of these nobody has to hear.
local function notice_due(first_ms, entries)
  local any = false
  for i = 1, #entries, 2 do
    local at_ms = entries[i]
    any = any or first_ms == 0 or at_ms < first_ms or at_ms <= now_ms + NEAR
  end
  if any then notice_of(first_ms, entries) end
end
