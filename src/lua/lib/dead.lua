-- SPDX-License-Identifier: MIT
-- The bounds of the dead jobs of a queue: the settings dead_max and dead_keep.
--
-- USES    groups index lives settings

-- The dead jobs that are too many or too old, the oldest first, as many as a call may free, and
-- their entries in the index; and whether there are more. Settings that this version cannot read,
-- and a key of another type, are no bounds: sweep has more to do. text: the settings.
local function dead_surplus(text)
  if not string.find(text, '^1 .*dead_') then return {}, {}, false end

  local _, values = settings_read(text)
  local keep_ms, most = duration_ms(values.dead_keep or ''), tonumber(values.dead_max)
  local n_old = keep_ms and call('ZCOUNT', DEAD, '-inf', now_ms - keep_ms) or 0
  local n_surplus = math.max(n_old, most and call('ZCARD', DEAD) - most or 0)
  if n_surplus < 1 then return {}, {}, false end

  local ids, entries, bytes = {}, {}, 0
  for _, id in ipairs(call('ZRANGE', DEAD, '0', math.min(n_surplus, BATCH) - 1)) do
    if bytes > BYTES then break end
    local record = call('HGET', JOBS, id)
    ids[#ids + 1], bytes = id, bytes + #(record or '')
    index_entries(entries, id, record)
    parts_forget(id, record)
  end
  lives_end(ids)
  return ids, entries, #ids < n_surplus
end
