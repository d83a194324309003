-- SPDX-License-Identifier: MIT
-- The jobs that have an entry in the index which begins so, page by page, by their ids.
--
-- USES    errors ids index next rows sets

-- A reply: the time, 1 if there are more, and a row of each, with its entry in errors: of those
-- that wait, run or are dead, behind after_id ('': from the first on), until BYTES of records are
-- read.
-- start: what the entries begin with; a space ends it.
local function page_of_index(start, limit, after_id)
  local first = (after_id == '' and '[' or '(') .. start .. after_id
  local behind = '(' .. string.sub(start, 1, -2) .. '!' -- the character behind the space
  local out, bytes = { now_us, 0 }, 0

  repeat
    local page = call('ZRANGEBYLEX', INDEX, first, behind, 'LIMIT', 0, limit + 1)
    for _, entry in ipairs(page) do
      local id = string.sub(entry, #start + 1)
      local set, score = set_of(id)
      local record
      if set and set ~= KEPT then record = record_now(id, set, score) end
      if record and id_valid(id) and index_has(entry, id, record) then
        if #out > limit + 1 or bytes > BYTES then
          out[2] = 1
          return out
        end
        local row = job_row(id, set, score, record)
        row[6] = failures_of(id, row[4])
        out[#out + 1] = row
        bytes = bytes + #record
      end
      first = '(' .. entry
    end
  until #page <= limit
  return out
end
