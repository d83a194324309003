-- SPDX-License-Identifier: MIT
-- The end of jobs that are to leave nothing behind.
--
-- USES    attempts index jobs next reports sets triggers

-- leaves: their ids by set. entries: theirs in the index. followed: the ids of those with a record
-- in next. report_ends_by() was called for each.
local function jobs_remove(leaves, ids, entries, followed)
  index_check(entries)
  index_check(next_entries)
  report_check()
  for _, set in ipairs({ DUE, RUN, DEAD }) do set_remove(set, leaves[set]) end
  jobs_delete(ids)
  attempts_delete(ids)
  report_leave()
  next_delete(followed)

  local triggers = {}
  for i, id in ipairs(ids) do triggers[i] = TRIGGER .. id end
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  index_remove(entries)
end
