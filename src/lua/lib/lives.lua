-- SPDX-License-Identifier: MIT
-- What a job has beside its attempt, for as long as its life: its report, and why its runs failed.
-- The attempt says which of them there are (o=1, r=1), so scripts know it without the record and
-- without looking. They go when the life ends, or when the job is not known any more.
--
-- USES    attempts types

local REPORT = BASE .. 'report'
local FAILURES = BASE .. 'errors'

-- The jobs of this call whose entries leave, by hash; and those that are kept, with what they have.
local life_leaves, life_stays = { [REPORT] = {}, [FAILURES] = {} }, {}

local function has_report(attempt) return attempt_more(attempt, 'o') ~= nil end

local function has_failures(attempt) return attempt_more(attempt, 'r') == '1' end

-- The entry of a job in one of the two leaves.
local function life_forget(hash, id) table.insert(life_leaves[hash], id) end

-- The life of a job is over, or begins again. attempt: its last one; nil: it has none.
local function life_ends(id, attempt)
  if not attempt or not attempt.more then return end
  if has_report(attempt) then life_forget(REPORT, id) end
  if has_failures(attempt) then life_forget(FAILURES, id) end
end

-- The same by the text of the attempt: '' or nil, if it has none.
local function life_ends_by(id, text)
  if string.byte(text or '') == 50 then life_ends(id, attempt_read(text)) end
end

-- The same of jobs whose attempts were not read.
local function lives_end(ids)
  local texts = #ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
  for i, id in ipairs(ids) do life_ends_by(id, texts[i]) end
end

-- The same; the attempt stays, and says nothing of it any more.
local function life_begins(id, attempt)
  life_ends(id, attempt)
  local words = string.gsub(',' .. (attempt.more or ''), ',[or]=[^,]*', '')
  attempt.more = #words > 1 and string.sub(words, 2) or nil
end

-- A job has ended and is kept, and so is what it has.
local function life_kept(id) life_stays[id] = true end

-- Before the first write.
local function lives_check()
  for hash, leaving in pairs(life_leaves) do
    if #leaving > 0 then check_hash(hash) end
  end
end

-- After the attempts that speak of it.
local function lives_leave()
  for _, hash in ipairs({ REPORT, FAILURES }) do
    local forgotten = {}
    for _, id in ipairs(life_leaves[hash]) do
      if not life_stays[id] then forgotten[#forgotten + 1] = id end
    end
    if #forgotten > 0 then write('HDEL', hash, unpack(forgotten)) end
  end
end
