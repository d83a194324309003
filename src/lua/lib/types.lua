-- SPDX-License-Identifier: MIT
-- Trips over a key of the wrong type, before the first write.
--
-- A script that writes to a key without having read it checks it first.

local function check_zset(key) call('ZCARD', key) end
local function check_hash(key) call('HLEN', key) end
