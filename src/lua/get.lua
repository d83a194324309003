-- Shows jobs, bodies included.
-- KEYS    1 due
-- ARGV    1 database; then ids
-- RETURNS now us; then per job: a row | ENOENT | EDATA; fewer than asked: ask again for the rest
-- ERRORS  Redis's own
-- COST    O(1) a job
local function main()
  local out, bytes = { now_us }, 0
  for i = 2, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[i]
    local set, score = find(id)
    local rec = set and call('HGET', JOBS, id)
    out[i] = not rec and 'ENOENT' or not header(rec) and 'EDATA' or row(id, set, score, rec)
    bytes = bytes + (rec and #rec or 0)
  end
  return out
end
return guard(main)
