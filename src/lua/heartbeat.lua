-- Enters a listener into the queue's registry, or takes it out, and says its rank. One that enters also sets its canary
-- anew, a trigger that is no job's: the last one then expires, and that its event arrives shows that events do.
-- KEYS    1 due
-- ARGV    1 database, 2 name, 3 heartbeat good for ms (0: leave)
-- RETURNS now us, rank among the live names, in the order of their last 16 bytes (-1: not in), how many are live
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners), 0.3 us each
local LIFE = 15000
-- A clock that was set back would keep names, also of the dead, for as long as it was set back.
local function cut(key, last)
  local late, pairs = call('ZRANGEBYSCORE', key, '(' .. num(last), '+inf', 'LIMIT', 0, BATCH), {}
  for i, other in ipairs(late) do pairs[i * 2 - 1], pairs[i * 2] = num(last), other end
  add(key, pairs)
end
local function main()
  local key, name, life = BASE .. 'listeners', ARGV[2], tonumber(ARGV[3])
  local changed = write('ZREMRANGEBYSCORE', key, '-inf', now)
  if life > 0 then changed = changed + write('ZADD', key, now + life, name)
  else changed = changed + write('ZREM', key, name) end
  cut(key, now + math.max(life, LIFE))
  if changed > 0 then tell('members') end
  if life == 0 then return { now_us, -1, call('ZCARD', key) } end
  redis.pcall('SET', BASE .. 't:{' .. name .. '}', '1', 'PX', 1)
  local names, bits, rank = call('ZRANGE', key, 0, -1), string.sub(name, -16), 0
  for _, other in ipairs(names) do
    local theirs = string.sub(other, -16)
    if theirs < bits or theirs == bits and bytes_of(other) < bytes_of(name) then rank = rank + 1 end
  end
  return { now_us, rank, #names }
end
return guard(main)
