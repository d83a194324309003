-- SPDX-License-Identifier: MIT
-- The channels of a queue.

-- It only helps others, so its errors are ignored. ARGV[1] begins with the number of the database,
-- which Redis's channels do not have.
local function channel_publish(name, text)
  redis.pcall('PUBLISH', BASE .. name .. ':' .. string.match(ARGV[1], '^%d+'), text)
end
