-- SPDX-License-Identifier: MIT
-- Whose job it is, among the listeners of its queue: ../README.md says why, membership.c agrees.

local PRIME = 4294967291
local FACTOR = 1664525 -- times PRIME it is below 2^53: Lua counts exactly

-- The rank of the listener that owns a job. An id is read by four bytes, the last ones filled up
-- with zeros, by a function of Redis in C.
local function owner_of(id, n_members)
  local n_words = math.ceil(#id / 4)
  local words = { struct.unpack('>' .. string.rep('I4', n_words), id .. '\0\0\0') }

  local hash = 0
  for i = 1, n_words do hash = (hash * FACTOR + words[i]) % PRIME end
  hash = hash * FACTOR % PRIME
  hash = hash * FACTOR % PRIME
  return math.floor(hash * n_members / PRIME)
end
