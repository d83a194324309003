-- Shows how far a batch is. Of its jobs it looks at some; to be called again with the cursor of its
-- answer, until that is empty.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer batches
-- KEYS    due none
-- READS   due run dead index batches
-- ARGV    database
--         name
--         cursor          '' at first, then that of the last answer
-- RETURNS now_us
--         n_left          of those looked at: they wait or run
--         n_dead          likewise: they are dead
--         n_ended         jobs that have left the batch since its beginning
--         closed          1: it is; its own job may have begun
--         cursor          text: for the next call; '': none is left
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 1000 jobs

local LOOKED_AT = 1000

-- An id that is too long for one is cut, and stands behind all that begin with the same.
local function batch_cursor(id)
  return #id > 255 and string.sub(id, 1, 254) .. '\255' or id
end

local function main()
  local before, n_left, n_dead = 'b ' .. ARGV[2] .. ' ', 0, 0
  local after, is_last = ARGV[3] or '', false
  local n = batch_count(ARGV[2])

  for _ = 1, LOOKED_AT / BATCH do
    local first = (after == '' and '[' or '(') .. before .. after
    local entries = call('ZRANGEBYLEX', INDEX, first, '(b ' .. ARGV[2] .. '!', 'LIMIT', 0, BATCH)
    local ids = {}
    for i, entry in ipairs(entries) do ids[i] = string.sub(entry, #before + 1) end
    is_last = #ids < BATCH
    if #ids > 0 then
      after = ids[#ids]
      for _, set in ipairs({ DUE, RUN, DEAD }) do
        for _, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
          if score and set == DEAD then
            n_dead = n_dead + 1
          elseif score then
            n_left = n_left + 1
          end
        end
      end
    end
    if is_last then break end
  end

  local cursor = is_last and '' or batch_cursor(after)
  return { now_us, n_left, n_dead, n % CLOSED, n >= CLOSED and 1 or 0, cursor }
end
return answer(main)
