-- SPDX-License-Identifier: MIT
-- Jobs that wait from now on, or will after their run: lib/marks.lua.
--
-- USES    attempts due lives marks next notice sets triggers

-- first_due: first_to_come() before. dues: due time, id, due time, id... leaves: { set, ids }... of
-- those that are in another set than due. revived: the ids of those whose tries start over.
-- priorities: by id.
local function jobs_wait(first_due, dues, leaves, revived, priorities)
  set_add(DUE, due_entries(dues, priorities))
  for _, from in ipairs(leaves) do set_remove(from[1], from[2]) end
  attempts_delete(revived)
  lives_leave()
  triggers_set(dues, false) -- before a batch ends, whose own job may be one of these
  next_leave()
  attempts_put(marked_attempts)
  notice_due(first_due, dues)
end
