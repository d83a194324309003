-- Reads the triggers of due jobs, which makes Redis expire them and publish that at once.
--
-- KIND    single
-- ROLE    listener
-- USES    answer due triggers
-- KEYS    due
-- READS   due t
-- ARGV    database
--         cursor_ms       the last due time that was touched
-- RETURNS now_us
--         oldest_due_ms   due, and not taken; 0: none
--         next_due_ms     the first that is due later; 0: none
--         n_read          triggers read
--         n_there         of these, still there
--         cursor_ms       for the next call
--         n_expired       triggers that this reading expired
-- ERRORS  Redis's own
-- COST    O(log N), and O(1) a trigger; at most 100
local function main()
  local cursor_ms = math.min(tonumber(ARGV[2]), now_ms)
  local after = '(' .. decimal(cursor_ms)
  local due = call('ZRANGEBYSCORE', DUE, after, now_ms, 'WITHSCORES', 'LIMIT', 0, BATCH)

  local triggers, n_there = {}, 0
  for i = 1, #due, 2 do triggers[#triggers + 1] = TRIGGER .. due[i] end
  local n_before = call('DBSIZE')
  if #triggers > 0 then n_there = call('EXISTS', unpack(triggers)) end
  local n_expired = n_before - call('DBSIZE')

  -- For a key the time is that of the script's start. Where that was a moment too early, the next
  -- call reads the same triggers again.
  if #triggers > 0 and n_there == 0 then cursor_ms = tonumber(due[#due]) end

  local oldest_due_ms, next_due_ms = next_due()
  return { now_us, oldest_due_ms, next_due_ms, #triggers, n_there, cursor_ms, n_expired }
end
return answer(main)
