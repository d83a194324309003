-- Deletes jobs that wait or are dead.
--
-- KIND    batch
-- ROLE    producer
-- USES    answer index record removal rows sets
-- KEYS    due none
-- READS   due run dead jobs attempts index
-- WRITES  due run dead jobs attempts t index
-- ARGV    database
--         then per job: id
-- RETURNS now_us
--         then per job: row (as it was, no body) | ENOENT | EBUSY
--           fewer than asked: the bodies of these were enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, bytes = { now_us }, 0
  local leaves = { [DUE] = {}, [RUN] = {}, [DEAD] = {} }
  local deleted, entries = {}, {}

  for at = 2, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[at]
    local set, score = set_of(id)
    local record = call('HGET', JOBS, id)
    bytes = bytes + #(record or '')

    if is_running(set, score) then
      out[at] = 'EBUSY'
    elseif not set and not record then
      out[at] = 'ENOENT'
    else
      local header = string.sub(record or '', 1, record_header(record or '') or 0)
      out[at] = job_row(id, set or DEAD, score or now_ms, header)
      table.insert(leaves[set or DEAD], id)
      deleted[#deleted + 1] = id
      index_entries(entries, id, record)
    end
  end

  jobs_remove(leaves, deleted, entries)
  return out
end
return answer(main)
