-- SPDX-License-Identifier: MIT
-- The end of jobs that are to leave nothing behind.
--
-- USES    attempts index jobs sets triggers

-- leaves: their ids by set. entries: theirs in the index.
local function jobs_remove(leaves, ids, entries)
  index_check(entries)
  for _, set in ipairs({ DUE, RUN, DEAD }) do set_remove(set, leaves[set]) end
  jobs_delete(ids)
  attempts_delete(ids)

  local triggers = {}
  for i, id in ipairs(ids) do triggers[i] = TRIGGER .. id end
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  index_remove(entries)
end
