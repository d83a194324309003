-- Says whether Redis may evict any key of ours when memory runs short.
-- KEYS    1 due
-- ARGV    1 database
-- RETURNS now us, 1: it may (maxmemory-policy allkeys-*) | 0: it does not, or this user may not ask
-- ERRORS  Redis's own
-- COST    O(1)
local function main()
  local may = redis.acl_check_cmd('INFO', 'memory') -- a refusal would stand in ACL LOG
  local info = may and redis.pcall('INFO', 'memory')
  return { now_us, type(info) == 'string' and string.find(info, 'maxmemory_policy:allkeys', 1, true) and 1 or 0 }
end
return guard(main)
