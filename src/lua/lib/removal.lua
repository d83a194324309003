-- SPDX-License-Identifier: MIT
-- The end of jobs that wait or are dead, or are kept. They leave nothing behind, unless they are
-- kept from now on.
--
-- USES    attempts ends groups index jobs kept lives next sets triggers

-- Those of this call: by set, all, which they are, their entries, and those with a record in next.
local going = { by_set = { [DUE] = {}, [RUN] = {}, [DEAD] = {}, [KEPT] = {} }, ids = {}, has = {},
  entries = {}, followed = {} }

-- A job goes that does not run: its id, set, score, record, and before, the one that its run had,
-- if another has followed. text: its attempt.
local function job_goes(job, text)
  local id, set = job.id, job.set
  if going.has[id] then return end

  life_ends_by(id, text)
  if set ~= KEPT then
    local due_ms = set == DUE and time_of(job.score) or nil
    kept_end(id, job.record, ENDED_CANCELLED, attempt_read(text), due_ms, job.before)
  end
  going.has[id] = true
  going.ids[#going.ids + 1] = id
  table.insert(going.by_set[set], id)
  index_entries(going.entries, id, job.record)
  parts_forget(id, job.record)
  if job.before then
    going.followed[#going.followed + 1] = id
    index_entries(going.entries, id, job.before)
  end
end

local function jobs_remove()
  index_check(going.entries)
  index_check(next_entries)
  kept_check()
  lives_check()

  local gone, triggers = {}, {}
  for i, id in ipairs(going.ids) do
    triggers[i] = TRIGGER .. id
    if not kept_has(id) then gone[#gone + 1] = id end
  end
  for _, set in ipairs({ DUE, RUN, DEAD, KEPT }) do set_remove(set, going.by_set[set]) end
  kept_put()
  leftovers_delete(gone)
  lives_leave()
  next_delete(going.followed)
  if #triggers > 0 then write('DEL', unpack(triggers)) end
  parts_leave()
  index_remove(going.entries)
  ends_tell()
end
