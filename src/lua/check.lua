-- Looks at a page of one of the queue's keys for jobs that are not whole.
-- KEYS    1 due
-- ARGV    1 database, 2 the key's end (jobs, due, run, dead or attempts), 3 page (0 first), 4 its size, about
-- RETURNS now us, next page (0: that was the last), looked at, their bytes, records of a format that this version
--         cannot read; then per job that is not whole: [id, what], what being
--         none (its record is in no set)       many (in more than one)    record (it has none, but is in a set)
--         attempt (nothing else is left of it)   holder (it runs, held by nobody)
--         each said once: none, many and holder of jobs, record of the first of its sets, attempt of attempts
-- ERRORS  Redis's own
-- COST    O(1) a job, and the page's bytes
-- All but the jobs with a record that are in one set, and not in run.
local function suspects(key, ids)
  local out = {}
  for first = 1, key == JOBS and #ids or 0, BATCH do
    local last = math.min(first + BATCH - 1, #ids)
    local due, run = call('ZMSCORE', DUE, unpack(ids, first, last)), call('ZMSCORE', RUN, unpack(ids, first, last))
    local dead = call('ZMSCORE', DEAD, unpack(ids, first, last))
    for i = 1, last - first + 1 do
      if run[i] or not due[i] == not dead[i] then out[#out + 1] = ids[first + i - 1] end
    end
  end
  for _, id in ipairs(key ~= JOBS and ids or {}) do
    if call('HEXISTS', JOBS, id) == 0 then out[#out + 1] = id end
  end
  return out
end
local function main()
  local key, hash, ids, bytes, unread = BASE .. ARGV[2], ARGV[2] == 'jobs' or ARGV[2] == 'attempts', {}, 0, 0
  local page = hash and call('HSCAN', key, ARGV[3], 'COUNT', ARGV[4]) or call('ZSCAN', key, ARGV[3], 'COUNT', ARGV[4])
  for i = 1, #page[2], 2 do
    local id, value = page[2][i], page[2][i + 1]
    if not ids[id] then ids[#ids + 1], ids[id] = id, true end
    bytes = bytes + #id + #value
    if key == JOBS and not header(value) then unread = unread + 1 end
  end
  local out = { now_us, tonumber(page[1]), #ids, bytes, unread }
  for _, id in ipairs(suspects(key, ids)) do
    local what, sets = lack(id)
    if what and (key == JOBS or key == (sets[1] or ATTEMPTS)) then out[#out + 1] = { id, what } end
  end
  return out
end
return guard(main)
