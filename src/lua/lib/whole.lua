-- SPDX-License-Identifier: MIT
-- Is all of the queue on this node? It is asked in a cluster alone, where ARGV[1] ends with
-- `cluster`, so it costs nothing elsewhere.
--
-- While a slot moves, KEYS[2] keeps scripts from starting. A replica that is promoted in the middle
-- of a move may not know of it, and starts them on what had not gone: claim would throw away due
-- jobs without a record, schedule would make a new hash of records, and the move could not be
-- finished. Each record is in one of four sets, so what is missing shows by the sizes. Of a key
-- that most queues have not (next, report, errors, index, conf) nothing says that it should be
-- there.

-- The scripts of no queue have one key. Most calls have the number of a database alone: a look at
-- its length is cheap.
local IN_CLUSTER = #ARGV[1] > 8 and #KEYS == 2 and string.find(ARGV[1], ' cluster', 1, true)

-- The keys that have gone, or of which at least one has; '': none.
local function whole_lacks()
  local sizes, members, absent = {}, 0, ''
  for _, name in ipairs({ 'due', 'run', 'dead', 'kept' }) do
    local set = BASE .. name
    sizes[name] = call('ZCARD', set)
    members = members + sizes[name]
    if sizes[name] == 0 then absent = absent .. ' ' .. set end
  end

  local records = call('HLEN', JOBS)
  if records == 0 and members > 0 then return ' ' .. JOBS end
  if records > members then return absent end
  local claimed = sizes.run + sizes.kept
  return claimed > 0 and call('HLEN', ATTEMPTS) == 0 and ' ' .. ATTEMPTS or ''
end
