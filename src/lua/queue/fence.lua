-- Changes something and leaves nothing. WAIT and WAITAOF behind it on one connection count for all
-- that Redis has answered before on any connection.
--
-- KIND    single
-- ROLE    producer
-- USES    answer
-- KEYS    due none
-- WRITES  fence
-- ARGV    database
-- RETURNS now_us
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1)
local function main()
  local fence = BASE .. 'fence'

  write('DEL', fence)
  write('SET', fence, '1')
  write('DEL', fence)
  return { now_us }
end
return answer(main)
