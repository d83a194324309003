-- Removes a queue: up to 100 jobs, whatever their state, and when none is left all that it has
-- beside them. No record is read, so entries of the index are left until the end; they are hints,
-- and what does not come to its end goes on in the next call. Members that are alive stay.
--
-- KIND    single
-- ROLE    listener
-- USES    answer notice sets triggers types
-- KEYS    due none
-- READS   listeners run due dead kept jobs attempts next report errors
-- WRITES  run due dead kept jobs attempts next report errors t p listeners index seq conf stream
--         list rate fence batches past notice
-- ARGV    database
--         force           1: also if it has live listeners; 0: then nothing changes
--         then per listener: name
--             name            of one that is alive, as alive has answered
-- RETURNS now_us
--         n_listeners     live members; with these, or with n_held, only force removes anything
--         n_held          jobs that run, under leases that are not over
--         n               jobs removed
--         more            1: there are more
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local STATES = { RUN, DUE, DEAD, KEPT }
local BESIDE = { JOBS, ATTEMPTS, NEXT, BASE .. 'report', BASE .. 'errors' }
local OTHERS = { 'index', 'seq', 'conf', 'stream', 'list', 'rate', 'fence', 'batches', 'past' }

-- The members that are alive, how many, and the names of the dead.
local function members_read(key)
  local alive, n_alive, gone = {}, 0, {}
  for at = 3, #ARGV do alive[ARGV[at]] = true end
  for _, name in ipairs(call('ZRANGE', key, 0, -1)) do
    if alive[name] then n_alive = n_alive + 1 else gone[#gone + 1] = name end
  end
  return n_alive, gone
end

-- The jobs of this call: all ids, those of each set, and are there more?
local function jobs_next()
  local ids, of_set, n_all = {}, {}, 0
  for _, set in ipairs(STATES) do
    n_all = n_all + call('ZCARD', set)
    of_set[set] = #ids < BATCH and call('ZRANGE', set, 0, BATCH - #ids - 1) or {}
    for _, id in ipairs(of_set[set]) do ids[#ids + 1] = id end
  end
  return ids, of_set, n_all > #ids
end

local function jobs_delete_all(ids, of_set)
  local triggers = {}
  for i, id in ipairs(ids) do triggers[2 * i - 1], triggers[2 * i] = TRIGGER .. id, PARTS .. id end

  for _, set in ipairs(STATES) do set_remove(set, of_set[set]) end
  for _, hash in ipairs(BESIDE) do write('HDEL', hash, unpack(ids)) end
  write('DEL', unpack(triggers))
end

-- Redis frees what is large without holding up others.
local function rest_delete(members, gone)
  for at = 1, #gone, BATCH do
    write('ZREM', members, unpack(gone, at, math.min(at + BATCH - 1, #gone)))
  end
  for _, hash in ipairs(BESIDE) do write('UNLINK', hash) end
  for _, name in ipairs(OTHERS) do write('UNLINK', BASE .. name) end
  notice_publish('queue')
end

local function main()
  local members = BASE .. 'listeners'
  local n_alive, gone = members_read(members)
  local n_held = call('ZCOUNT', RUN, '(' .. decimal(now_ms), '+inf')
  if ARGV[2] ~= '1' and n_alive + n_held > 0 then return { now_us, n_alive, n_held, 0, 0 } end

  local ids, of_set, more = jobs_next()
  for _, hash in ipairs(BESIDE) do check_hash(hash) end
  if #ids > 0 then jobs_delete_all(ids, of_set) end
  if not more then rest_delete(members, gone) end
  return { now_us, n_alive, n_held, #ids, more and 1 or 0 }
end
return answer(main)
