-- Makes jobs that wait or are dead due at another time; a dead one waits again, its tries anew.
-- KEYS    1 due
-- ARGV    1 database; then per job: id, due ('+ms' from now, or ms)
-- RETURNS now us; then per job: a row (no body) | ENOENT | EBUSY | EINVAL; fewer than asked: ask again for the rest
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, dues, from, anew, bytes = { now_us }, {}, {}, {}, 0
  local _, head = outlook()
  for i = 2, #ARGV, 2 do
    if bytes > BYTES then break end
    local id, due, answer = ARGV[i], ARGV[i + 1]
    due = math.max(now, string.byte(due) == 43 and now + tonumber(string.sub(due, 2)) or tonumber(due))
    local set, score = find(id)
    local rec = set and call('HGET', JOBS, id)
    if not rec then answer = 'ENOENT'
    elseif busy(set, score) then answer = 'EBUSY'
    elseif due > now + TEN_YEARS then answer = 'EINVAL'
    else
      bytes = bytes + #rec
      answer = row(id, set, score, string.sub(rec, 1, header(rec) or 0))
      if answer[2] == DIED then anew[#anew + 1], answer[4] = id, '' end
      answer[2], answer[3] = WAITING, due
      dues[#dues + 1], dues[#dues + 2] = due, id
      if set ~= DUE then from[#from + 1] = { set, { id } } end
    end
    out[#out + 1] = answer
  end
  add(DUE, dues)
  for _, old in ipairs(from) do rem(old[1], old[2]) end
  forget(anew)
  for i = 1, #dues, 2 do arm(dues[i + 1], dues[i]) end
  wake(head, dues)
  return out
end
return guard(main)
