-- Shows what has happened in a queue: the rows that begin in a time, in no order, and the counts of
-- all time.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer past
-- KEYS    due none
-- READS   past
-- ARGV    database
--         from_ms         the rows that begin then, or later
--         to_ms           and before that
-- RETURNS now_us
--         since_ms        when the history began; 0: there is none
--         all             text: what was counted since then, as count has it
--         then per row: from_ms, length_ms, counts
--             length_ms       of what time it is: 60000, 600000, 3600000 or 86400000
-- ERRORS  Redis's own
-- COST    O(rows), up to 1 ms
local function main()
  local all, at, rows = unpack(call('HMGET', PAST, 'all', 'at', 'rows'))
  local first_ms, end_ms, names = tonumber(ARGV[2]), tonumber(ARGV[3]), {}
  local out = { now_us, tonumber(string.match(at or '', ' (%d+)$')) or 0, all or '' }

  for _, name in ipairs(row_names(rows)) do
    local kind, number = row_name(name)
    local from_ms = number * ROW_MS[kind]
    if from_ms >= first_ms and from_ms < end_ms then names[#names + 1] = name end
  end
  local texts = #names > 0 and call('HMGET', PAST, unpack(names)) or {}
  for i, name in ipairs(names) do
    local kind, number = row_name(name)
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = number * ROW_MS[kind], ROW_MS[kind], texts[i] or ''
  end
  return out
end
return answer(main)
