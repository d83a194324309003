-- SPDX-License-Identifier: MIT
-- Looks for lists of parts that are of no group, and makes a dead job of each, so that nothing is
-- thrown away. Left alone such a list takes memory, until the next group of that id removes it.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts jobs made record sets whole
-- KEYS    due none
-- READS   due run dead kept jobs attempts p
-- WRITES  jobs attempts dead p
-- ARGV    database
--         repair          1: dead jobs are made; 0: it only looks
--         then per list: id
--           id            of the group whose list it would be
-- RETURNS now_us
--         then per list: '': it is that of a group, or gone; stray: it is not; parts: it was not,
--         and is now the body of a dead job. That has the id, or the id and ~0 behind it if another
--         job has it. A list that is none of parts, or has no such id, stays and is a stray one.
--           fewer than asked: what was read is enough for one call; ask again for the rest
-- ERRORS  Redis's own; EBROKEN. In a cluster a stray list of a queue that has no key jobs is EHALF:
--         its group may be on another node with all of them
-- COST    O(1) a list; with repair the bytes of those that may become a job, up to 1 MiB each, and
--         none after 256 KiB of them
local REASON = 'lapse doctor: the parts were of no group'
local PARTS_MAX = 1000
local BODY_MAX = 1048576
local PAGE = 10 -- of parts that are read at once: what other programs have left may be large

-- A part is as long as the number at its beginning says.
local function is_part(text)
  local len, scale, at, byte = 0, 1, 0
  repeat
    at = at + 1
    byte = string.byte(text, at)
    if not byte or at > 4 then return false end
    len, scale = len + (byte % 128) * scale, scale * 128
  until byte < 128
  return #text == at + len
end

-- The parts, if they can be the body of a job; and how many bytes were read.
local function parts_of_a_job(id)
  local parts, bytes, n = {}, 0, call('LLEN', PARTS .. id)
  if n > PARTS_MAX then return nil, 0 end

  for first = 0, n - 1, PAGE do
    for _, part in ipairs(call('LRANGE', PARTS .. id, first, first + PAGE - 1)) do
      parts[#parts + 1], bytes = part, bytes + #part
      if not is_part(part) or bytes > BODY_MAX then return nil, bytes end
    end
  end
  return parts, bytes
end

-- The ids that jobs of this call get.
local taken = {}

local function is_free(id)
  return not taken[id] and call('HEXISTS', JOBS, id) == 0 and call('HEXISTS', ATTEMPTS, id) == 0
    and not set_of(id)
end

-- The id of the job that is made of them; nil: there is none.
local function id_for(id)
  if is_free(id) then return id end
  local other = id .. '~0'
  return #other <= 255 and is_free(other) and other or nil
end

-- Can it be a group? One whose record is of a newer version can: only that version may say.
local function is_of_group(id, record)
  local may_gather = record and (record_gathers(record) or not record_header(record))
  return may_gather and set_of(id) ~= KEPT
end

local function main()
  local out, records, attempts, dead, gone = { now_us }, {}, {}, {}, {}
  local bytes = 0
  local has_gone = IN_CLUSTER and call('HLEN', JOBS) == 0

  for at = 3, #ARGV do
    if bytes > BYTES then break end
    local id = ARGV[at]
    local kind = call('TYPE', PARTS .. id).ok
    local is_stray = kind ~= 'none' and not is_of_group(id, call('HGET', JOBS, id))
    if is_stray and has_gone then return { err = 'LAPSE EHALF ' .. JOBS } end
    local parts, n_read
    if is_stray and kind == 'list' and ARGV[2] == '1' then
      parts, n_read = parts_of_a_job(id)
      bytes = bytes + n_read
    end
    local job = parts and id_for(id)
    out[#out + 1] = is_stray and (job and 'parts' or 'stray') or ''

    if job then
      taken[job] = true
      local pieces, n = {}, #attempts
      piece_add(pieces, 'p', decimal(#parts))
      records[n + 1] = job
      records[n + 2] = record_of_pieces(pieces, '\2\0', table.concat(parts))
      attempts[n + 1] = job
      attempts[n + 2] = attempt_text({ token = '0', holder = '-', try = 0, tries = 10,
        claimed_us = decimal(now_us), due_ms = now_ms, reason = REASON })
      dead[n + 1], dead[n + 2] = now_ms, job
      gone[#gone + 1] = PARTS .. id
    end
  end

  jobs_put(records)
  attempts_put(attempts)
  set_add(DEAD, dead)
  if #gone > 0 then write('DEL', unpack(gone)) end
  return out
end
return answer(main)
