-- Takes back the jobs whose lease has ended: due since then, or by the backoff of the job if the
-- lease of its run before ended too. A job dies whose tries are used up, or that would be due later
-- than any of its runs may begin (attribute R). Or does what was asked while they ran. And frees
-- dead jobs that are too many or too old, by the settings dead_max and dead_keep, and jobs that
-- have been kept for as long as they asked for.
--
-- KIND    single
-- ROLE    listener
-- USES    answer attempts backoff dead due errors groups index jobs kept limits lives marks next
--         notice sets settings triggers types
-- KEYS    due none
-- READS   run due dead kept attempts jobs next index batches conf report errors
-- WRITES  run due dead kept jobs attempts p report errors next index batches t ends notice
-- ARGV    database
--         tell            1: those that die are shown; 0, or missing: they are not
-- RETURNS now_us
--         n_taken         jobs taken back, or cancelled
--         n_dead          of these, dead
--         more            1: there are more
--         n_freed         dead jobs that are gone
--         then per job: row (of those that died, if they are to be shown)
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; at most 100, or the record that passed 256 KiB

-- What becomes of the jobs of this call: ids of all; due time, id... of those that wait, with their
-- priorities; time, id... of the dead; id, attempt...; ids of those without a record; rows.
local swept = { ids = {}, dues = {}, priorities = {}, dead = {}, attempts = {}, lost = {},
  rows = {}, bytes = 0 }

-- The lease of a job has ended.
local function sweep_one(id, end_ms)
  local attempt = attempt_read(call('HGET', ATTEMPTS, id))
  swept.ids[#swept.ids + 1] = id
  if call('HEXISTS', JOBS, id) == 0 then
    swept.lost[#swept.lost + 1] = id
    life_ends(id, attempt)
    return
  end
  if attempt and marked_end(id, attempt, swept.dues, swept.priorities) then return end

  local set, score, n_read = swept.dues, end_ms, 0
  if attempt then score, n_read = due_after_lease(id, attempt, end_ms) end
  if not score then
    set, score = swept.dead, end_ms
    marked_dies(id, attempt)
  end
  swept.bytes = swept.bytes + n_read
  set[#set + 1], set[#set + 2] = score, id
  local attempts = swept.attempts
  if attempt then
    swept.priorities[id] = attempt_priority(attempt)
    attempt.due_ms, attempt.reason = score, LEASE_ENDED
    failure_keep(id, attempt, end_ms)
    attempts[#attempts + 1], attempts[#attempts + 2] = id, attempt_text(attempt)
  end
  if set == swept.dead and ARGV[2] == '1' then
    local record = call('HGET', JOBS, id)
    swept.bytes = swept.bytes + #record
    swept.rows[#swept.rows + 1] = { id, DIED, end_ms, attempts[#attempts], record }
  end
end

local function main()
  local ended = call('ZRANGEBYSCORE', RUN, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, BATCH)
  local ids, dues, dead, lost = swept.ids, swept.dues, swept.dead, swept.lost
  local first_due = first_to_come()
  local settings = call('MGET', CONF)[1] or ''
  local surplus, entries, more_surplus = dead_surplus(settings)
  local past, freed, more_past = kept_past()
  local is_met = limits_are_met(settings)
  check_zset(RUN)
  if #surplus == 0 then check_zset(DEAD) end
  index_check(entries)

  for i = 1, #ended, 2 do
    if swept.bytes + next_bytes > BYTES then break end
    sweep_one(ended[i], time_of(ended[i + 1]))
  end

  marked_check()
  set_remove(RUN, ids)
  set_add(DUE, due_entries(dues, swept.priorities))
  set_add(DEAD, dead)
  set_remove(DEAD, surplus)
  set_remove(KEPT, past)
  local tells = limits_leave(is_met, ids, lost)
  leftovers_delete(surplus)
  parts_leave()
  leftovers_delete(freed)
  marked_leave(swept.attempts, lost)
  index_remove(entries)
  triggers_set(dues, true)
  notice_due(first_due, dues)
  limits_tell(tells)
  local more = #ended == BATCH * 2 or #ids < #ended / 2 or more_surplus or more_past
  return { now_us, #ids, #dead / 2, more and 1 or 0, #surplus, unpack(swept.rows) }
end
return answer(main)
