-- SPDX-License-Identifier: MIT
-- The hash errors: why the last runs failed of jobs whose record asks for that (attribute e). The
-- attempt of such a job says r=0, or r=1 as soon as there is an entry; where it does not, an entry
-- counts for nothing. So scripts know it without the record, and when it goes: lib/lives.lua.
--
-- USES    attempts lives types

-- What changes in this call: id, text, id, text...
local failures_new = {}

-- Those of a job with this attempt, as replies show them; nil: there are none. text: '' if it has
-- no attempt.
local function failures_of(id, text)
  local attempt = string.byte(text) == 50 and attempt_read(text)
  return attempt and has_failures(attempt) and call('HGET', FAILURES, id) or nil
end

-- As much of a reason as is kept of each: 200 bytes, and no part of a character of UTF-8.
local function failure_reason(reason)
  if #reason <= 200 then return reason end
  for len = 200, 197, -1 do
    local byte = string.byte(reason, len + 1)
    if byte < 128 or byte > 191 then return string.sub(reason, 1, len) end
  end
  return string.sub(reason, 1, 200)
end

-- The last entries of a text, no more than so many; the rest of one that is none is left out.
local function failures_last(text, most)
  local entries, at = {}, 1
  while true do
    local first, last, len = string.find(text, '^%d+ %d+ (%d+) ', at)
    if not first or last + tonumber(len) > #text then break end

    at = last + tonumber(len) + 1
    entries[#entries + 1] = string.sub(text, first, at - 1)
  end
  return table.concat(entries, '', math.max(1, #entries - most + 1))
end

-- A run failed, or there is to be none, and the attempt has the reason. If the job asks for that,
-- it is kept, and the attempt is another.
local function failure_keep(id, attempt, at_ms)
  local asks = attempt_more(attempt, 'r')
  if not asks then return end

  local before = asks == '1' and call('HGET', FAILURES, id) or ''
  local reason = failure_reason(attempt.reason)
  local n = #failures_new
  failures_new[n + 1] = id
  failures_new[n + 2] = failures_last(before, 4) .. decimal(at_ms) .. ' ' .. decimal(attempt.try) ..
    ' ' .. #reason .. ' ' .. reason
  attempt.more = string.sub(string.gsub(',' .. attempt.more, ',r=0', ',r=1'), 2)
end

-- The same, of a claim that lets the job die: returns what its attempt then says of it.
local function failure_by(id, more, try, reason)
  local attempt = { more = more, try = try, reason = reason }
  failure_keep(id, attempt, now_ms)
  return attempt.more
end

-- What the attempt says of them of a job whose record cannot be read: the same as before.
local function failures_noted(attempt)
  local asks = attempt_more(attempt, 'r')
  return asks and 'r=' .. asks
end

-- Before the first write.
local function failures_check()
  if #failures_new > 0 then check_hash(FAILURES) end
end

-- After a removal, for a Redis that is out of memory.
local function failures_put()
  if #failures_new > 0 then write('HSET', FAILURES, unpack(failures_new)) end
end
