-- Gives entries of the queue's stream that a group has given out, and that nobody has acknowledged
-- for a while, to another consumer of the group, those first that were added first. At the end it
-- removes the consumers that have no entries and were not heard of for long.
--
-- KIND    single
-- ROLE    listener
-- USES    answer settings
-- KEYS    due none
-- READS   conf stream
-- WRITES  stream
-- ARGV    database
--         group
--         consumer        who gets the entries; made if it is not there
--         idle_ms         how long ago an entry was given out, or longer
--         limit           0 to 100; 0: only removes consumers
--         from            where to begin: '-', or what the call before said
--         gone_ms         how long ago a consumer asked for something, or longer
-- RETURNS now_us
--         known           1; 0: the queue has no stream, or that has no such group
--         next            text: where to go on; '0-0': there are no more entries
--         n_removed       consumers; 100: there may be more
--         then per entry: entry (id, deliveries; of a job: id, due_ms, try, token, body, headers;
--           and of one that is of a group's parts: = and how many)
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1) an entry; looks at 1000 at most, and at none after the 100 or 256 KiB that it moves;
--         O(consumers) at the end

-- The first fields of an entry that lapse has added; its headers come behind them, and a newer
-- version may add more.
local FIELDS = { 'id', 'due_ms', 'try', 'token', 'body' }

-- The stream, if it has such a group.
local function stream_of(values, group)
  local key = string.match(values.forward or '', '^stream:(.+)$')
  if not key or call('EXISTS', key) == 0 then return nil end

  for _, other in ipairs(call('XINFO', 'groups', key)) do
    if other[2] == group then return key end
  end
end

-- An entry as it is answered, and its size.
local function entry_read(key, group, entry)
  local id, fields = entry[1], entry[2]
  local pending = call('XPENDING', key, group, id, id, 1)[1]
  local out, is_ours, bytes = { id, pending[4] }, true, 0

  for _, text in ipairs(fields) do bytes = bytes + #text end
  for i, name in ipairs(FIELDS) do is_ours = is_ours and fields[2 * i - 1] == name end
  for i = 2, is_ours and #fields or 0, 2 do
    local header = string.match(fields[i - 1], '^header:(.*)$')
    if i <= 2 * #FIELDS then out[#out + 1] = fields[i] end
    if header then out[#out + 1] = header .. '=' .. fields[i] end
    if fields[i - 1] == 'parts' then out[#out + 1] = '=' .. fields[i] end
  end
  return out, bytes
end

-- Adds the entries that are moved to out. The number that is asked for doubles: so few are moved
-- after the one that passes BYTES. Redis looks at ten entries for each that is asked for.
local function entries_move(key, out)
  local group, consumer, limit, from = ARGV[2], ARGV[3], math.min(tonumber(ARGV[5]), BATCH), ARGV[6]
  local n, asked, chunk, bytes = 0, 0, 1, 0

  while n < limit and asked < BATCH and bytes <= BYTES and from ~= '0-0' do
    chunk = math.min(chunk, limit - n, BATCH - asked)
    local moved = written('XAUTOCLAIM', key, group, consumer, ARGV[4], from, 'COUNT', chunk)
    for _, entry in ipairs(moved[2]) do
      local row, size = entry_read(key, group, entry)
      n, bytes = n + 1, bytes + size
      out[#out + 1] = row
    end
    from, asked, chunk = moved[1], asked + chunk, chunk * 2
  end
  return from, n == limit or from == '0-0'
end

local function consumers_remove(key, group, kept, gone_ms)
  local n = 0
  for _, consumer in ipairs(call('XINFO', 'consumers', key, group)) do
    local name, n_pending, idle_ms = consumer[2], consumer[4], consumer[6]
    if n < BATCH and n_pending == 0 and idle_ms >= gone_ms and name ~= kept then
      write('XGROUP', 'delconsumer', key, group, name)
      n = n + 1
    end
  end
  return n
end

local function main()
  local _, values = settings_read(call('GET', CONF) or '1 ')
  local key = stream_of(values, ARGV[2])
  if not key then return { now_us, 0, '0-0', 0 } end

  local out = { now_us, 1, '', 0 }
  local from, is_end = entries_move(key, out)
  out[3] = from
  if is_end then out[4] = consumers_remove(key, ARGV[2], ARGV[3], tonumber(ARGV[7])) end
  return out
end
return answer(main)
