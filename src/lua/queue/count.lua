-- Adds to the history of a queue what a process has counted since it did so last. Once in ten
-- minutes it also makes coarser rows of old ones: of minutes after an hour, of ten minutes after a
-- day, of hours after two weeks. Days go after history_days. Where the rows are too large, hours
-- become days earlier than that, then the others.
--
-- KIND    single, needs memory, unasked
-- ROLE    producer
-- USES    answer past settings
-- KEYS    due none
-- READS   conf past due run dead kept seq
-- WRITES  past
-- ARGV    database
--         sender          who has counted, up to 32 letters and digits; '': it never asks again
--         number          of the counts: it grows; those that were added already are not again
--         counts          such as s5d3Ta3Ts1200Tz700: a name, then how many
-- RETURNS now_us
--         days            the setting history_days; 0: nothing was added
-- ERRORS  Redis's own; EBROKEN
-- COST    O(1), 40 us; once in ten minutes O(rows), up to 2 ms

-- With what comes in ten minutes, and the senders, all is at most 256 KiB.
local ROWS_MAX = 200 * 1024
local ROW_COST = 64 -- of Redis, beside the texts
local SEEN_MAX = 8192

-- ---- the rows ----
local function rows_read(names)
  local rows = { m = {}, t = {}, h = {}, d = {} }
  local texts = #names > 0 and call('HMGET', PAST, unpack(names)) or {}
  for i, name in ipairs(names) do
    local kind, number = row_name(name)
    if texts[i] then rows[kind][number] = texts[i] end
  end
  return rows
end

-- The fields of all rows, and those of which the text has changed, each with its text.
local function rows_fields(rows)
  local names, changed = {}, {}
  for kind, of_kind in pairs(rows) do
    for number, row in pairs(of_kind) do
      local name = kind .. decimal(number)
      names[#names + 1] = name
      if type(row) == 'table' then
        changed[#changed + 1], changed[#changed + 2] = name, counts_text(row)
      end
    end
  end
  table.sort(names)
  return names, changed
end

local function row_text(row) return type(row) == 'table' and counts_text(row) or row end
local function row_counts(row) return type(row) == 'table' and row or counts_read(row) end

local function rows_size(rows)
  local size = 0
  for _, of_kind in pairs(rows) do
    for _, row in pairs(of_kind) do size = size + #row_text(row) + ROW_COST end
  end
  return size
end

-- The numbers of the rows that are over for longer than so many of their kind take, in order. Those
-- of which a coarser one is made go together.
local function rows_old(rows, kind, kept)
  local ms = ROW_MS[ROW_OF[kind] or kind]
  local old = {}
  for number in pairs(rows[kind]) do
    local ends_ms = (math.floor(number * ROW_MS[kind] / ms) + 1) * ms
    if ends_ms + kept * ROW_MS[kind] <= now_ms then old[#old + 1] = number end
  end
  table.sort(old)
  return old
end

-- Makes coarser rows, and adds the fields of those that are gone.
local function rows_fold(rows, kept, gone)
  for _, fine in ipairs({ 'm', 't', 'h', 'd' }) do
    local into = rows[ROW_OF[fine]]
    for _, number in ipairs(rows_old(rows, fine, kept[fine])) do
      if into then
        local at = math.floor(number * ROW_MS[fine] / ROW_MS[ROW_OF[fine]])
        into[at] = row_counts(into[at] or '')
        counts_add(into[at], row_counts(rows[fine][number]))
      end
      rows[fine][number] = nil
      gone[#gone + 1] = fine .. decimal(number)
    end
  end
end

-- The names of the rows that there are then.
local function rows_tidy(names, days)
  local rows, gone = rows_read(names), {}
  local kept = { m = 60, t = 144, h = 336, d = days }

  rows_fold(rows, kept, gone)
  for _, kind in ipairs({ 'h', 't', 'm', 'd' }) do
    while kept[kind] > 0 and rows_size(rows) > ROWS_MAX do
      kept[kind] = math.floor(kept[kind] / 2)
      rows_fold(rows, kept, gone)
    end
  end

  local left, changed = rows_fields(rows)
  if #changed > 0 then write('HSET', PAST, unpack(changed)) end
  if #gone > 0 then write('HDEL', PAST, unpack(gone)) end
  return left
end

-- ---- senders ----
-- The last number of each is known, as long as not too many others have sent something since.
local function seen_with(seen, sender, number)
  if sender == '' then return seen end
  local others = string.gsub(seen, ' ' .. sender .. '=%d+', '')
  local all = ' ' .. sender .. '=' .. number .. others
  return #all <= SEEN_MAX and all or string.match(string.sub(all, 1, SEEN_MAX), '^(.*) ')
end

local function check_arguments()
  local is_good = string.find(ARGV[2], '^%w*$') and #ARGV[2] <= 32 and
    string.find(ARGV[3], '^%d+$') and #ARGV[3] <= 15 and #ARGV[4] <= 8192 and
    string.gsub(ARGV[4], '%u?%l%d+', '') == ''
  if not is_good then error({ err = 'ERR these are no counts, or not of a sender' }) end
end

-- A queue of which there is nothing was removed; what has happened before is not its history.
local function is_removed()
  return call('EXISTS', DUE, RUN, DEAD, KEPT, BASE .. 'seq', CONF) == 0
end

local function main()
  local sender, number, added = ARGV[2], tonumber(ARGV[3]), counts_read(ARGV[4])
  check_arguments()

  local _, values = settings_read(call('GET', CONF) or '1 ')
  local days = tonumber(values.history_days) or 90
  local minute = 'm' .. decimal(math.floor(now_ms / ROW_MS.m))
  local row, all, tidied, seen, rows =
    unpack(call('HMGET', PAST, minute, 'all', 'at', 'seen', 'rows'))
  if days == 0 or not tidied and is_removed() then return { now_us, days } end

  seen = seen or ''
  local last = sender ~= '' and string.match(seen, ' ' .. sender .. '=(%d+)')
  if last and tonumber(last) >= number then return { now_us, days } end

  local at, since = string.match(tidied or '', '^(%d+) (%d+)$')
  local now_at = decimal(math.floor(now_ms / ROW_MS.t))
  local counts = counts_read(row or '')
  all = counts_read(all or '')
  counts_add(counts, added)
  counts_add(all, added)
  if at ~= now_at then rows = table.concat(rows_tidy(row_names(rows), days), ' ') end
  if not row then rows = (rows or '') .. ' ' .. minute end
  write('HSET', PAST, minute, counts_text(counts), 'all', counts_text(all),
    'at', now_at .. ' ' .. (since or decimal(now_ms)), 'seen', seen_with(seen, sender, ARGV[3]),
    'rows', rows)
  return { now_us, days }
end
return answer(main)
