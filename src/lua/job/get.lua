-- Shows jobs, bodies and reports included.
--
-- KIND    batch, read-only, ids may repeat
-- ROLE    monitor
-- USES    answer errors next record reports rows sets
-- KEYS    due none
-- READS   due run dead kept jobs attempts next report errors
-- ARGV    database
--         then per job: id
-- RETURNS now_us
--         then per job: row (then its entry in errors and its report) | ENOENT | EDATA
--           EDATA         it cannot be read
--           fewer than asked: these were enough for one call; ask again for the rest
-- ERRORS  Redis's own
-- COST    O(1) a job
local function main()
  local out, bytes = { now_us }, 0

  for at = 2, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[at]
    local set, score = set_of(id)
    local record
    if set then record = record_now(id, set, score) end

    if not record or is_past(set, score) then
      out[at] = 'ENOENT'
    elseif not record_header(record) then
      out[at] = 'EDATA'
    else
      local row = job_row(id, set, score, record)
      local report = report_of(id, row[4])
      row[6] = failures_of(id, row[4]) or report and ''
      row[7] = report
      bytes = bytes + #(report or '')
      out[at] = row
    end
    bytes = bytes + (record and #record or 0)
  end
  return out
end
return answer(main)
