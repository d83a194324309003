-- Gives series the next moments of their calendars, where they have still those that their caller
-- has seen. One that had none left, and looked for some each minute, goes on with the first; so
-- does one that has had none yet, if that is earlier than it was to begin.
--
-- KIND    batch, needs memory
-- ROLE    producer
-- USES    answer attempts due jobs made notice record sets triggers types
-- KEYS    due none
-- READS   due jobs attempts
-- WRITES  due jobs attempts t notice
-- ARGV    database
--         then per job: id, series, calendar, moments
--           series        its attribute S, as it was read
--           calendar      its attribute C
--           moments       'ms,ms...', growing, which take the place of those in S; a 0 behind them:
--                         there are no more
-- RETURNS now_us
--         then per job: due_ms | ENOENT | EINVAL
--           ENOENT        it is gone, does not wait, or says something else by now
--           EINVAL        these are no moments
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job, and its bytes

-- The record with another attribute S.
local function record_with_series(record, len, series)
  local pieces, before, body = record_pieces(record, len)
  for i, piece in ipairs(pieces) do
    if string.byte(piece) == 83 then pieces[i] = 'S' .. length_text(#series) .. series end
  end
  return (record_of_pieces(pieces, before, body))
end

-- The first of the moments that is later; nil: there is none.
local function first_after(moments, ms)
  for moment in string.gmatch(moments, '%d+') do
    if tonumber(moment) > ms then return tonumber(moment) end
  end
end

local function main()
  local out, dues, priorities, records, attempts, bytes = { now_us }, {}, {}, {}, {}, 0
  local first_due = first_to_come()
  check_hash(ATTEMPTS)

  for at = 2, #ARGV, 4 do
    if bytes > BYTES then break end
    local id, series, calendar, moments = unpack(ARGV, at, at + 3)
    local record, score = call('HGET', JOBS, id), call('ZSCORE', DUE, id)
    local len, _, _, _, attributes = record_header(record or '')
    local reply = time_of(score)
    bytes = bytes + #(record or '')

    if #moments > 255 or not string.find(moments, '^%d[%d,]*$') then
      reply = 'EINVAL'
    elseif not score or not attributes or attributes.S ~= series or attributes.C ~= calendar
      or not string.find(series, ' c ', 1, true) then
      reply = 'ENOENT'
    else
      series = string.match(series, '^(.* )') .. moments
      records[#records + 1], records[#records + 2] = id, record_with_series(record, len, series)
      local attempt = attempt_read(call('HGET', ATTEMPTS, id))
      local has_begun = attempt and attempt_more(attempt, 'n') ~= '0'
      local begins_ms = not has_begun and first_after(moments, now_ms - LOOK_MS)
      if attempt and attempt_more(attempt, 'a') then
        local first_ms = first_after(moments, attempt.due_ms)
        -- without one it has ended, as a claim will find, which looks for some
        if first_ms then attempt.more = string.gsub(attempt.more, ',a=0', '') end
        reply = first_ms or now_ms
        attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
        dues[#dues + 1], dues[#dues + 2], priorities[id] = reply, id, record_priority(record)
      elseif begins_ms and begins_ms < reply then
        reply = begins_ms
        dues[#dues + 1], dues[#dues + 2], priorities[id] = reply, id, record_priority(record)
      end
    end
    out[#out + 1] = reply
  end

  set_add(DUE, due_entries(dues, priorities))
  jobs_put(records)
  attempts_put(attempts)
  triggers_set(dues, false)
  notice_due(first_due, dues)
  return out
end
return answer(main)
