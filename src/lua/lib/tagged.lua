-- SPDX-License-Identifier: MIT
-- The jobs of a selection that are found by their tag, or their batch: a walk through the index, by
-- id, so it meets each id once. It goes no further than the last id that had the tag at its
-- beginning.
--
-- USES    attempts index next

-- The last id of a tag; what stands in no id, and what is too long for one, is cut off.
local function tagged_last(tag)
  local before = index_start(tag)
  local behind = '(' .. string.sub(before, 1, -2) .. '!' -- the character behind the space
  local last = call('ZREVRANGEBYLEX', INDEX, behind, '[' .. before, 'LIMIT', 0, 1)[1]
  local id = string.sub(last or '', #before + 1)
  local part = string.sub(string.match(id, '^[!-z|~]*'), 1, 255)
  return part == id and part or part .. '\255'
end

-- The jobs that are next, of which only those in a set have one. And are these the last ones?
local function tagged_page(walk, limit)
  local before, page, ids = index_start(walk.tag), {}, {}
  local first = '(' .. before .. walk.id
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

-- Does a record of the job say that it has the tag: the one that it has, or the one that is to
-- follow its run?
local function tagged_has(tag, job)
  local entry = index_start(tag) .. job.id
  if index_has(entry, job.id, job.record) then return true end

  local attempt = job.state == RUNNING and attempt_read(job.text)
  if not attempt or not next_follows(attempt) then return false end
  return index_has(entry, job.id, call('HGET', NEXT, job.id))
end
