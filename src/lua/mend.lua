-- Makes jobs whole that are not. Nothing is thrown away: what cannot run again is dead, and its reason says what was
-- found. Of several sets that one stays which loses nothing: a live lease, else that from which the job runs again.
-- KEYS    1 due
-- ARGV    1 database; then ids, at most 100
-- RETURNS now us; then per job: what was mended, as check says it; '' if it is whole, or gone
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local DIES = { none = 'it was in no set', record = 'its record was lost', attempt = 'only its attempt was left' }
-- An unreadable text stays: it is of a newer version.
local function last_words(id, rec, what)
  local old, _, tries = call('HGET', ATTEMPTS, id), header(rec or '')
  local h = parse(old)
  if old and not h then return {} end
  h = h or { try = 0, tries = tries or 10, token = '0', claimed_us = num(now_us), due = now, holder = '-', reason = '' }
  h.reason = string.sub('lapse doctor: ' .. DIES[what] .. (h.reason ~= '' and '; before: ' .. h.reason or ''), 1, 200)
  return { id, text_of(h) }
end
local function main()
  local out, dues, dead, records, held, keys = { now_us }, {}, {}, {}, {}, {}
  local from = { [DUE] = {}, [RUN] = {}, [DEAD] = {} }
  call('HLEN', ATTEMPTS)
  for i = 2, #ARGV do
    local id = ARGV[i]
    local what, sets = lack(id)
    local stays = (sets[RUN] and sets[RUN] > now and RUN) or (sets[DUE] and DUE) or RUN
    out[i] = what or ''
    if DIES[what] then
      local rec = call('HGET', JOBS, id)
      for _, text in ipairs(last_words(id, rec, what)) do held[#held + 1] = text end
      stays, dead[#dead + 1], dead[#dead + 2] = DEAD, now, id
      if not rec then records[#records + 1], records[#records + 2] = id, '\1\0' end
    elseif what == 'holder' then
      stays, dues[#dues + 1], dues[#dues + 2] = DUE, now, id
    end
    for _, set in ipairs(what and sets or {}) do if set ~= stays then table.insert(from[set], id) end end
    if what and stays ~= DUE then keys[#keys + 1] = BASE .. 't:' .. id end
  end
  -- breaking off anywhere here leaves what the next look finds: a job in two sets, and never one that was whole in none
  if #keys > 0 then write('DEL', unpack(keys)) end
  put(records)
  hold(held)
  add(DEAD, dead)
  add(DUE, dues)
  for set, ids in pairs(from) do rem(set, ids) end
  wake(0, dues)
  return out
end
return guard(main)
