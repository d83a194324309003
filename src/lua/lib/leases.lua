-- SPDX-License-Identifier: MIT
-- Who holds a running job: the holder ARGV[2], by the token of its claim.
--
-- USES    attempts

-- The token, as text, and the holder of an attempt, for a fifth of the price of attempt_read().
local function token_and_holder(text)
  return string.match(text or '', '^1 %d+ %d+ (%d+) %d+ %d+ (%S+) ')
end

-- The holder '*' stands for any.
local function is_held(token, holder, claimed_token)
  return token and token == claimed_token and (holder == ARGV[2] or ARGV[2] == '*')
end

-- Of each job in ARGV[3], ARGV[3 + step]... (an id, its token, and more) the attempt, where ARGV[2]
-- still holds it; else false.
local function attempts_held(step)
  local ids, out = {}, {}
  for at = 3, #ARGV, step do ids[#ids + 1] = ARGV[at] end

  local texts, ends = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
  for at = 3, #ARGV, step do
    local i = #out + 1
    local attempt = ends[i] and attempt_read(texts[i])
    out[i] = attempt and is_held(attempt.token, attempt.holder, ARGV[at + 1]) and attempt or false
  end
  return out
end
