-- SPDX-License-Identifier: MIT
-- Who holds a running job: the holder ARGV[2], by the token of its claim.
--
-- USES    attempts limits

-- What stands behind the token in the attempts of the holder; '*' is any holder.
local held_by = ARGV[2] == '*' and ' ' or ' ' .. ARGV[2] .. ' '

-- Is it an attempt of the holder, by this token? They stand behind its form, the first character,
-- so a settle has to read no more. text: '' if there is none.
local function is_held(text, token)
  return string.find(text, ' ' .. token .. held_by, 2, true) == 2
end

-- Of each job in ARGV[3], ARGV[3 + step]... (an id, its token, and more) the attempt, where ARGV[2]
-- still holds it; else false. Then whether anybody has met max_running: lib/limits.lua. And when
-- their leases end.
local function attempts_held(step)
  local ids, out = {}, {}
  for at = 3, #ARGV, step do ids[#ids + 1] = ARGV[at] end

  local texts = call('HMGET', ATTEMPTS, MET, unpack(ids))
  local ends = call('ZMSCORE', RUN, unpack(ids))
  for at = 3, #ARGV, step do
    local i = #out + 1
    local text = texts[i + 1] or ''
    local held = ends[i] and is_held(text, ARGV[at + 1])
    out[i] = held and attempt_read(text) or false
    if out[i] then out[i].until_ms = tonumber(ends[i]) end
  end
  return out, texts[1], ends
end
