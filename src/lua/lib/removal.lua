-- SPDX-License-Identifier: MIT
-- The end of jobs that wait or are dead. They leave nothing behind, unless they are kept.
--
-- USES    ends index jobs kept lives next sets triggers

-- leaves: their ids by set. entries: theirs in the index. followed: the ids of those with a record
-- in next. life_ends() was called for each.
local function jobs_remove(leaves, ids, entries, followed)
  index_check(entries)
  index_check(next_entries)
  kept_check()
  lives_check()

  local gone = {}
  for _, id in ipairs(ids) do
    if not kept_has(id) then gone[#gone + 1] = id end
  end
  for _, set in ipairs({ DUE, RUN, DEAD, KEPT }) do set_remove(set, leaves[set]) end
  kept_put()
  leftovers_delete(gone)
  lives_leave()
  next_delete(followed)

  local triggers = {}
  for i, id in ipairs(ids) do triggers[i] = TRIGGER .. id end
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  index_remove(entries)
  ends_tell()
end
