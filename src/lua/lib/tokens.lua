-- SPDX-License-Identifier: MIT
-- Tokens, one a claim: distinct, and growing over all lives of an id.

local SEQ = BASE .. 'seq'

-- The next token is one more than this: the last token, or the time in microseconds. The time keeps
-- tokens distinct and growing where Redis lost its last writes, the last token where its clock was
-- set back. stored: the last token as MGET has read it, which takes a key of the wrong type for a
-- missing one; GET does not.
local function token_last(stored)
  local text = stored or call('GET', SEQ) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  local most = 2 ^ 53 - 2 ^ 20 -- Lua counts exactly up to 2^53
  if not last or last > most or decimal(last) ~= text then
    error({ err = 'ERR ' .. SEQ .. ' is no token' })
  end
  return math.max(last, now_us)
end

-- The tokens of one claim differ in their last digits alone.
local MILLION = 1000000
local millions, millions_text
local function token_text(token)
  local high = math.floor(token / MILLION)
  if high ~= millions then millions, millions_text = high, decimal(high) end
  return string.format('%s%06d', millions_text, token - high * MILLION)
end

-- Once the clock has passed the last token, the clock alone suffices. An hour, because an event of
-- its expiry goes to all listeners.
local function token_keep(token)
  write('SET', SEQ, decimal(token), 'PXAT', decimal(math.floor(token / 1000) + 3600000))
end
