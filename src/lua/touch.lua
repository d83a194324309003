-- Reads the triggers of due jobs, which makes Redis expire them and say so, now.
-- KEYS    1 due
-- ARGV    1 database, 2 cursor: the last due touched, ms
-- RETURNS now us, oldest due ms left (0: none), next due ms (0: none), triggers read, of them still there, new cursor
--         ms, triggers that this reading expired
-- ERRORS  Redis's own
-- COST    O(log N), and O(1) a trigger; at most 100
local function main()
  local cursor = math.min(tonumber(ARGV[2]), now)
  local due = call('ZRANGEBYSCORE', DUE, '(' .. num(cursor), now, 'WITHSCORES', 'LIMIT', 0, BATCH)
  local keys, still = {}, 0
  for i = 1, #due, 2 do keys[#keys + 1] = BASE .. 't:' .. due[i] end
  local before = call('DBSIZE')
  if #keys > 0 then still = call('EXISTS', unpack(keys)) end
  -- a key's clock is the script's start: where that was a moment too early, the same triggers are read again
  if #keys > 0 and still == 0 then cursor = tonumber(due[#due]) end
  local oldest, next = outlook()
  return { now_us, oldest, next, #keys, still, cursor, before - call('DBSIZE') }
end
return guard(main)
