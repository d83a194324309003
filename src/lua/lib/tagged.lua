-- SPDX-License-Identifier: MIT
-- The jobs of a selection that are found by their tag: a walk through the index, by id, so it meets
-- each id once. It goes no further than the last id that had the tag at its beginning.
--
-- USES    index

-- The last id of a tag; what stands in no id, and what is too long for one, is cut off.
local function tagged_last(tag)
  local before = 't ' .. tag .. ' '
  local last = call('ZREVRANGEBYLEX', INDEX, '(t ' .. tag .. '!', '[' .. before, 'LIMIT', 0, 1)[1]
  local id = string.sub(last or '', #before + 1)
  local part = string.sub(string.match(id, '^[!-z|~]*'), 1, 255)
  return part == id and part ~= '' and part or part .. '\255'
end

-- The jobs that are next, of which only those in a set have one. And are these the last ones?
local function tagged_page(walk, limit)
  local before, page, ids = 't ' .. walk.tag .. ' ', {}, {}
  local first = (walk.id == '' and '[' or '(') .. before .. walk.id
  local last = '[' .. before .. walk.highest
  local entries = call('ZRANGEBYLEX', INDEX, first, last, 'LIMIT', 0, limit + 1)
  for i = 1, math.min(#entries, limit) do ids[i] = string.sub(entries[i], #before + 1) end
  if #ids == 0 then return page, true end

  for i, id in ipairs(ids) do page[i] = { id = id, score = '0' } end
  for _, set in ipairs({ DUE, RUN, DEAD }) do
    for i, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
      if score then page[i].set, page[i].score = set, score end
    end
  end
  return page, #entries <= limit
end

-- Does the record of a job say that it has the tag? The entries that it names are kept for who
-- removes the job.
local function tagged_has(tag, job)
  local entry, found = 't ' .. tag .. ' ' .. job.id, false
  job.entries = {}
  index_entries(job.entries, job.id, job.record)
  for _, own in ipairs(job.entries) do found = found or own == entry end
  return found
end
