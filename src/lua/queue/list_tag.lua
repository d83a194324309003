-- Shows a page of the jobs with a tag, bodies included, by their ids, whatever their state.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer errors ids index next rows sets
-- KEYS    due none
-- READS   due run dead kept jobs attempts next index errors
-- ARGV    database
--         tag
--         limit
--         after_id        of the last job of the page before; '' for the first page
-- RETURNS now_us
--         more            1: there are more
--         then per job: row (then its entry in errors)
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100 jobs, or the one that passed 256 KiB
local function main()
  local before = 't ' .. ARGV[2] .. ' '
  local limit = math.min(tonumber(ARGV[3]), BATCH)
  local first = (ARGV[4] == '' and '[' or '(') .. before .. ARGV[4]
  local behind = '(t ' .. ARGV[2] .. '!' -- the character behind the space
  local out, bytes = { now_us, 0 }, 0

  repeat
    local page = call('ZRANGEBYLEX', INDEX, first, behind, 'LIMIT', 0, limit + 1)
    for _, entry in ipairs(page) do
      local id = string.sub(entry, #before + 1)
      local set, score = set_of(id)
      local record
      if set and set ~= KEPT then record = record_now(id, set, score) end
      if record and id_valid(id) and index_has(entry, id, record) then
        if #out > limit + 1 or bytes > BYTES then
          out[2] = 1
          return out
        end
        local row = job_row(id, set, score, record)
        row[6] = failures_of(id, row[4])
        out[#out + 1] = row
        bytes = bytes + #record
      end
      first = '(' .. entry
    end
  until #page <= limit
  return out
end
return answer(main)
