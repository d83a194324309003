-- SPDX-License-Identifier: MIT
-- What became of jobs that have ended: for as long as their attribute K says, they are in the set
-- kept, with their records, and their attempts say e=N beside what else they have. A record there
-- has no body, unless K ends with b.
--
-- USES    attempts ends jobs lives record sets types

-- How a job has ended.
local ENDED_DONE = 1
local ENDED_CANCELLED = 2
local ENDED_SKIPPED = 3
local ENDED_FORWARDED = 4

-- The last attempt of a job that has ended. What only concerns the rest of a life goes.
local function kept_attempt(attempt, tries, due_ms, how)
  local words = {}
  for word in string.gmatch(attempt.more or '', '[^,]+') do
    if not string.find(word, '^[bcdefjqwx]=') then words[#words + 1] = word end
  end
  words[#words + 1] = 'e=' .. how

  local by = attempt.token .. ' ' .. (attempt.holder or '-')
  return attempt_words(by, attempt.try, attempt.tries or tries, attempt.claimed_us or '0',
    due_ms or attempt.due_ms or now_ms, attempt.reason, table.concat(words, ','))
end

-- The jobs of this call that are kept: until when and id; id and record, of those whose record is
-- another now; id and attempt. And which they are.
local kept_scores, kept_records, kept_attempts, kept_ids = {}, {}, {}, {}

-- A job ends. true: it is kept, and who ends it does not remove its record and its attempt.
-- attempt: nil, it has none. due_ms: nil, that of the attempt. follows: the record is not yet the
-- one in jobs.
local function kept_end(id, record, how, attempt, due_ms, follows)
  if not record or string.byte(record) ~= 2 then return false end

  local len, tries, _, _, attributes = record_header(record)
  local keep_ms, body = string.match(attributes and attributes.K or '', '^(%d+)(b?)$')
  if not keep_ms then return false end

  local n, m = #kept_scores, #kept_records
  kept_scores[n + 1], kept_scores[n + 2] = now_ms + tonumber(keep_ms), id
  kept_attempts[n + 1] = id
  kept_attempts[n + 2] = kept_attempt(attempt or NO_ATTEMPT, tries, due_ms, how)
  if body == '' then record = string.sub(record, 1, len) end
  if body == '' or follows then kept_records[m + 1], kept_records[m + 2] = id, record end
  kept_ids[id] = true
  life_kept(id)
  end_note(id)
  return true
end

-- Is it one of these?
local function kept_has(id) return kept_ids[id] end

-- Before the first write.
local function kept_check()
  if #kept_scores > 0 then check_zset(KEPT) end
end

-- After they have left their sets.
local function kept_put()
  set_add(KEPT, kept_scores)
  jobs_put(kept_records)
  attempts_put(kept_attempts)
end

-- How a job that is kept has ended.
local function kept_how(text)
  local attempt = attempt_read(text)
  return attempt and tonumber(attempt_more(attempt, 'e'))
end

-- The jobs that nobody knows any more, as many as a call may free; those of them that leave more
-- than their place in kept; and whether there may be more. A version that does not know of kept may
-- have given the id of one a new life.
local function kept_past()
  local ids = call('ZRANGEBYSCORE', KEPT, '-inf', now_ms, 'LIMIT', 0, BATCH)
  if #ids == 0 then return ids, ids, false end

  local lives, gone = {}, {}
  for _, set in ipairs({ DUE, RUN, DEAD }) do
    for i, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
      lives[i] = lives[i] or score
    end
  end
  for i, id in ipairs(ids) do
    if not lives[i] then gone[#gone + 1] = id end
  end
  lives_end(gone)
  return ids, gone, #ids == BATCH
end
