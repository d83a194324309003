-- SPDX-License-Identifier: MIT
-- The hash attempts: which attempt of a job it is, by which token, and who runs it or ran it last.

-- nil: there is none, or none that this version can read. Token and claimed_us stay texts: they are
-- large, and formatting numbers is the dearest thing that a script does.
local function attempt_read(text)
  if not text then return nil end

  local token, holder, try, tries, claimed_us, due_ms, reason =
    string.match(text, '^1 (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  local more
  if not token then
    token, holder, try, tries, claimed_us, due_ms, more, reason =
      string.match(text, '^2 (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  end
  if not token then return nil end

  return {
    token = token,
    holder = holder,
    try = tonumber(try),
    tries = tonumber(tries),
    claimed_us = claimed_us,
    due_ms = tonumber(due_ms),
    more = more,
    reason = reason,
  }
end

-- Before the first claim of a life.
local NO_ATTEMPT = { try = 0, token = '0', reason = '' }

-- The numbers of attempts as texts: jobs of one call have most of them in common.
local numbers = {}
local function number_text(number)
  local text = numbers[number]
  if not text then
    text = decimal(number)
    numbers[number] = text
  end
  return text
end

-- by: the token and the holder, with a space between. more: nil, or what only some jobs have.
local function attempt_words(by, try, tries, claimed_us, due_ms, reason, more)
  local version = '1 '
  if more then version, reason = '2 ', more .. ' ' .. reason end
  return version .. by .. ' ' .. number_text(try) .. ' ' .. number_text(tries) .. ' ' ..
    claimed_us .. ' ' .. number_text(due_ms) .. ' ' .. reason
end

local function attempt_text(attempt)
  local by = attempt.token .. ' ' .. attempt.holder
  return attempt_words(by, attempt.try, attempt.tries, attempt.claimed_us, attempt.due_ms,
    attempt.reason, attempt.more)
end

-- The value by this name in what only some attempts have; nil: there is none.
local function attempt_more(attempt, name)
  return attempt.more and string.match(',' .. attempt.more, ',' .. name .. '=([^,]*)')
end

-- The priority of a job; nil: it has none.
local function attempt_priority(attempt) return tonumber(attempt_more(attempt, 'q')) end

-- Is it that of a series, which counts its moments? attempt may be nil.
local function attempt_counts(attempt) return attempt and attempt_more(attempt, 'n') ~= nil end

-- Was something asked while it ran? lib/marks.lua says what.
local function is_marked(attempt)
  return attempt_more(attempt, 'c') ~= nil or attempt_more(attempt, 'd') ~= nil
end

-- The last moment at which a run of the job may begin.
local function attempt_last_ms(attempt)
  return tonumber(attempt_more(attempt, 'f')) or math.huge
end

local function tries_used_up(attempt)
  return attempt.tries ~= FOREVER and attempt.try >= attempt.tries
end

-- entries: id, text, id, text...
local function attempts_put(entries)
  if #entries > 0 then write('HSET', ATTEMPTS, unpack(entries)) end
end

local function attempts_delete(ids)
  if #ids > 0 then write('HDEL', ATTEMPTS, unpack(ids)) end
end
