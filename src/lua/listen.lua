-- Enters a listener into the queue's registry, or takes it out, and says its rank. One that enters also sets its canary
-- anew, a trigger that is no job's: the last one then expires, and that its event arrives shows that events do.
-- KEYS    1 due
-- ARGV    1 database, 2 name, 3 heartbeat good for ms (0: leave)
-- RETURNS now us, rank among the live names in byte order (-1: not in), how many are live
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners)
local function main()
  local key, name, life = BASE .. 'listeners', ARGV[2], tonumber(ARGV[3])
  local changed = write('ZREMRANGEBYSCORE', key, '-inf', now)
  if life > 0 then changed = changed + write('ZADD', key, now + life, name)
  else changed = changed + write('ZREM', key, name) end
  local names, rank = call('ZRANGE', key, 0, -1), -1
  table.sort(names, function(a, b) return bytes_of(a) < bytes_of(b) end)
  for i, other in ipairs(names) do if other == name then rank = i - 1 end end
  if changed > 0 then tell('members') end
  if life > 0 then redis.pcall('SET', BASE .. 't:{' .. name .. '}', '1', 'PX', 1) end
  return { now_us, rank, #names }
end
return guard(main)
