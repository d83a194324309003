-- Enters a listener among those of a queue, or takes it out, and answers which there are. They are
-- members whether they are alive or not.
--
-- KIND    single
-- ROLE    listener
-- USES    answer notice
-- KEYS    due none
-- READS   listeners
-- WRITES  listeners notice
-- ARGV    database
--         name
--         enters          1: it enters; 0: it leaves
--         then per listener: gone
--             gone            the name of one that is dead, to be removed
-- RETURNS now_us
--         then per listener: name
-- ERRORS  Redis's own; EBROKEN
-- COST    O(listeners), 0.2 us each
local function main()
  local key, name, enters = BASE .. 'listeners', ARGV[2], ARGV[3] == '1'

  -- No listener has an empty name: what begins with a removal works when Redis is out of memory.
  local removed = { '' }
  if not enters then removed[2] = name end
  for at = 4, #ARGV do removed[#removed + 1] = ARGV[at] end

  local n_changed = written('ZREM', key, unpack(removed))
  if enters then n_changed = n_changed + written('ZADD', key, 'NX', now_ms, name) end
  if n_changed > 0 then notice_publish('members') end

  local reply = call('ZRANGE', key, 0, -1)
  table.insert(reply, 1, now_us)
  return reply
end
return answer(main)
