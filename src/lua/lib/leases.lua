-- SPDX-License-Identifier: MIT
-- Who holds a running job: the holder ARGV[2], by the token of its claim.
--
-- USES    attempts

-- What stands behind the token in the attempts of the holder; '*' is any holder.
local held_by = ARGV[2] == '*' and ' ' or ' ' .. ARGV[2] .. ' '

-- Is it an attempt of the holder, by this token? Token and holder stand behind its form, so that a
-- settle has to read no more.
local function is_held(text, token)
  local first = ' ' .. token .. held_by
  return text and string.sub(text, 2, #first + 1) == first and string.find(text, '^[12]')
end

-- Of each job in ARGV[3], ARGV[3 + step]... (an id, its token, and more) the attempt, where ARGV[2]
-- still holds it; else false.
local function attempts_held(step)
  local ids, out = {}, {}
  for at = 3, #ARGV, step do ids[#ids + 1] = ARGV[at] end

  local texts, ends = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
  for at = 3, #ARGV, step do
    local i = #out + 1
    local held = ends[i] and is_held(texts[i], ARGV[at + 1])
    out[i] = held and attempt_read(texts[i]) or false
    if out[i] then out[i].until_ms = tonumber(ends[i]) end
  end
  return out
end
