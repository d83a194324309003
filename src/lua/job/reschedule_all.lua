-- Makes the jobs of a selection due at another time: those of a state, or with a tag, or some of
-- them. Dead ones wait again, with all their tries, but for those whose unique key another job
-- holds; so do those that run, after their run, if that is wanted. To be called again with the
-- cursor of its answer, until that is empty.
--
-- KIND    single, needs memory
-- ROLE    producer
-- USES    answer attempts due index lives moves next record selections unique
-- KEYS    due none
-- READS   due run dead jobs attempts next seq index batches report errors
-- WRITES  index due run dead attempts report errors t jobs next batches notice
-- ARGV    database
--         state           1 waiting, 2 running, 3 dead; 0: any, if a tag is named
--         tag             those with this tag; 'b NAME': those of this batch; '': any
--         reason          part of the reasons; '': any
--         before_ms       only those that are due, or died, before this; 0: all
--         limit           move, and ask, at most so many
--         cursor          '' at first, then that of the last answer
--         running         1: those that run are due then after their run; 0: they are not
--         due             '+ms' from the first call, or ms
--         spread_ms       each so much later as its id says, but less than this; 0: all at once
-- RETURNS now_us
--         n               jobs moved; those that are due then in any case do not count
--         n_running       jobs of the selection that run: they are left, or asked that had not been
--         cursor          text: for the next call; '': none is left
--         due_ms          none of them is due before; 0: they would be due in over ten years, and
--                           nothing has changed
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job; it looks at 100 at most, and at none after 256 KiB of records

-- How much later a job is due than the first of its selection: the first 32 bits of the SHA1 of its
-- id say which part of spread_ms. A repeat does not change that.
local function spread_of(id, spread_ms)
  local part = tonumber(string.sub(redis.sha1hex(id), 1, 8), 16) / 2 ^ 32
  return math.floor(part * spread_ms)
end

local function main()
  if ARGV[2] == '4' then error({ err = 'ERR a job that has ended does not wait again' }) end
  local first_due, spread_ms = first_to_come(), tonumber(ARGV[10])
  local began, rest = string.match(ARGV[7], '^(%d+) (.*)$')
  local start_ms = tonumber(began) or due_of(ARGV[9])
  if not began and start_ms + spread_ms > now_ms + TEN_YEARS then return { now_us, 0, 0, '', 0 } end

  local function due_for(id) return start_ms + spread_of(id, spread_ms) end
  local function mark_of(id) return 'd=' .. decimal(due_for(id)) end
  local jobs, n_running, cursor = selection_jobs(rest or ARGV[7], mark_of)
  local dues, leaves, revived, priorities = {}, { [RUN] = {}, [DEAD] = {} }, {}, {}
  local entries, taken = {}, {}
  for _, job in ipairs(jobs) do
    local id, at_ms = job.id, due_for(job.id)
    local is_there = job.set == DUE and time_of(job.score) == at_ms
    local may_wait = job.record and not is_there
    if may_wait and job.state == DIED then
      may_wait = key_take(entries, taken, id, job.record, next_entries)
    end
    if may_wait then
      dues[#dues + 1], dues[#dues + 2], priorities[id] = at_ms, id, record_priority(job.record)
      if job.set ~= DUE then table.insert(leaves[job.set], id) end
      if job.before then next_take(id, job.before, job.record, attempt_read(job.text), at_ms) end
      local counts = attempt_counts(attempt_read(job.text))
      if not counts and (job.state == DIED or job.asked) then
        life_ends_by(id, job.text)
        revived[#revived + 1] = id
      end
    end
  end

  next_entries_stay(entries)
  index_check(entries)
  index_check(next_entries)
  lives_check()
  index_add(entries)
  local moved = { { RUN, leaves[RUN] }, { DEAD, leaves[DEAD] } }
  jobs_wait(first_due, dues, moved, revived, priorities)
  if cursor ~= '' then cursor = decimal(start_ms) .. ' ' .. cursor end
  return { now_us, #dues / 2, n_running, cursor, start_ms }
end
return answer(main)
