-- Removes jobs that wait or are dead.
-- KEYS    1 due
-- ARGV    1 database; then ids
-- RETURNS now us; then per job: a row (as it was, no body) | ENOENT | EBUSY; fewer than asked: ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, gone, keys, bytes = { now_us }, { [DUE] = {}, [RUN] = {}, [DEAD] = {} }, {}, 0
  for i = 2, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[i]
    local set, score = find(id)
    local rec = call('HGET', JOBS, id)
    bytes = bytes + #(rec or '')
    if busy(set, score) then out[i] = 'EBUSY'
    elseif not set and not rec then out[i] = 'ENOENT'
    else
      out[i] = row(id, set or DEAD, score or now, string.sub(rec or '', 1, header(rec or '') or 0))
      table.insert(gone[set or DEAD], id)
      keys[#keys + 1] = BASE .. 't:' .. id
    end
  end
  for set, ids in pairs(gone) do drop(set, ids) end
  if #keys > 0 then write('DEL', unpack(keys)) end
  return out
end
return guard(main)
