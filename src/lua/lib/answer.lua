-- SPDX-License-Identifier: MIT
-- Runs a script and answers what it returns; an error becomes a refusal or EBROKEN. In a cluster a
-- queue of which a part is missing is refused with EHALF, and the keys of which one has gone.
--
-- USES    whole

-- Adds the name of the denied command, which Redis 7.0 leaves out. The build fills in the commands
-- that the script calls. The key is given often enough for any of them: acl_check_cmd('SET') alone
-- reads past its arguments, and Redis 7.0.15 crashes.
local function with_command(reason)
  if not string.find(reason, "can't run this command or subcommand", 1, true) then return reason end
  local key = KEYS[1]
  for command, sub in string.gmatch('@COMMANDS@', '(%u+)|?(%l*)') do
    local first = sub ~= '' and sub or key
    if not redis.acl_check_cmd(command, first, key, key, key) then
      return reason .. ': ' .. command .. (sub ~= '' and '|' .. sub or '')
    end
  end
  return reason
end

-- Before the first write an error has changed nothing; Redis does not roll back what came before
-- a later one. Redis's pcall makes a text of an error, and the err of a text is nil.
local function answer_error(thrown)
  local reason = with_command(thrown.err or thrown)
  return { err = wrote and ('LAPSE EBROKEN ' .. reason) or reason }
end

-- nil: nothing is missing.
local function answer_half()
  local lacks = whole_lacks()
  return lacks ~= '' and { err = 'LAPSE EHALF' .. lacks } or nil
end

-- What main answers, or what is missing. The build puts main in the place of its call.
local function answer_whole(main)
  if IN_CLUSTER then
    local half = answer_half()
    if half then return half end
  end
  return main()
end

local function answer(main)
  local ok, reply = pcall(answer_whole, main)
  if ok then return reply end
  return answer_error(reply)
end
