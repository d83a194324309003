-- SPDX-License-Identifier: MIT
-- Who waits for the end of a job hears of it: 'ID ID ID...' on a channel of the queue, at most once
-- a script, behind all that it writes. That goes for jobs whose attribute K keeps them; of others
-- nothing is known but that they are gone.
--
-- USES    channel ids

local end_ids = {}

-- The job is kept, or dead, when this call is over.
local function end_note(id)
  if id_valid(id) then end_ids[#end_ids + 1] = id end
end

-- A job dies. attributes: those of its record; nil: it has none.
local function death_note(id, attributes)
  if attributes and attributes.K then end_note(id) end
end

local function ends_tell()
  if #end_ids > 0 then channel_publish('ends', table.concat(end_ids, ' ')) end
end
