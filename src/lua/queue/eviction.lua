-- Answers whether Redis may evict any key of ours when memory runs short.
--
-- KIND    single
-- ROLE    listener
-- USES    answer
-- KEYS    due none
-- ARGV    database
-- RETURNS now_us
--         may_evict       1: it may (maxmemory-policy allkeys-*); 0: not, or this user may not ask
-- ERRORS  Redis's own
-- COST    O(1)
local function main()
  local allowed = redis.acl_check_cmd('INFO', 'memory') -- a refusal would stand in ACL LOG
  local info = allowed and redis.pcall('INFO', 'memory')
  local any = type(info) == 'string' and string.find(info, 'maxmemory_policy:allkeys', 1, true)
  return { now_us, any and 1 or 0 }
end
return answer(main)
