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
  for command, sub in string.gmatch('@COMMANDS@', '(%u+)|?(%l*)') do
    local first = sub ~= '' and sub or DUE
    if not redis.acl_check_cmd(command, first, DUE, DUE, DUE) then
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

local function answer_half()
  local ok, lacks = pcall(whole_lacks)
  if not ok then return answer_error(lacks) end
  return lacks ~= '' and { err = 'LAPSE EHALF' .. lacks }
end

local function answer(main)
  local half = IN_CLUSTER and answer_half()
  if half then return half end

  local ok, reply = pcall(main)
  if ok then return reply end
  return answer_error(reply)
end
