-- Stores new jobs, sets their triggers, wakes the listeners.
-- KEYS    1 due
-- ARGV    1 database; then per job: id, due ('+ms' from now, or ms), on conflict (0 reject, 1 keep, 2 replace), record
-- RETURNS now us; then per job: its due ms | a row (kept) | EEXIST | EBUSY | EINVAL (over ten years) | EDATA (kept)
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local n, ids = (#ARGV - 1) / 4, {}
  for i = 1, n do ids[i] = ARGV[i * 4 - 2] end
  local there, _, head = call('HMGET', JOBS, unpack(ids)), outlook()
  local out, dues, records, from, anew = { now_us }, {}, {}, {}, {}
  for i = 1, n do
    local id, due, conflict, rec = unpack(ARGV, i * 4 - 2, i * 4 + 1)
    due = math.max(now, string.byte(due) == 43 and now + tonumber(string.sub(due, 2)) or tonumber(due))
    local answer, set, score = due, nil, nil
    if there[i] then set, score = find(id) end
    if due > now + TEN_YEARS then answer = 'EINVAL'
    elseif set and conflict == '0' then answer = 'EEXIST'
    elseif set and conflict == '1' then
      local len = header(there[i])
      answer = len and row(id, set, score, string.sub(there[i], 1, len)) or 'EDATA'
    elseif set and busy(set, score) then answer = 'EBUSY'
    else
      dues[#dues + 1], dues[#dues + 2] = due, id
      records[#records + 1], records[#records + 2] = id, rec
      if set then anew[#anew + 1] = id end
      if set and set ~= DUE then from[#from + 1] = { set, { id } } end
    end
    out[i + 1] = answer
  end
  if #anew > 0 then call('HLEN', ATTEMPTS) end
  add(DUE, dues)
  put(records)
  for _, old in ipairs(from) do rem(old[1], old[2]) end
  forget(anew)
  for i = 1, #dues, 2 do arm(dues[i + 1], dues[i], #anew == 0) end
  wake(head, dues)
  return out
end
return guard(main)
