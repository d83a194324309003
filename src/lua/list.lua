-- Shows a page of one state, bodies included: waiting by due, running by end of lease, dead by death.
-- KEYS    1 due
-- ARGV    1 database, 2 state (1 waiting, 2 running, 3 dead), 3 how many, 4 score and 5 id of the last one before ('')
-- RETURNS now us, 1 if there is more; then a row per job
-- ERRORS  Redis's own
-- COST    O(log N) a job; at most 100 jobs, or the one that passed 256 KiB; those of no valid id are passed over
local function start(set, score, id)
  if id == '' then return 0 end
  if ms(call('ZSCORE', set, id)) == tonumber(score) then return call('ZRANK', set, id) + 1 end
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do -- it is gone: its place among those of its score, which are in byte order
    local middle = math.floor((low + high) / 2)
    if bytes_of(call('ZRANGE', set, middle, middle)[1]) > bytes_of(id) then high = middle else low = middle + 1 end
  end
  return low
end
local function main()
  local set, limit = ({ DUE, RUN, DEAD })[tonumber(ARGV[2])], math.min(tonumber(ARGV[3]), BATCH)
  local first, out, bytes = start(set, ARGV[4], ARGV[5]), { now_us, 0 }, 0
  repeat
    local page = call('ZRANGE', set, first, first + limit, 'WITHSCORES')
    for i = 1, #page, 2 do
      if id_ok(page[i]) then
        if #out > limit + 1 or bytes > BYTES then
          out[2] = 1
          return out
        end
        local rec = call('HGET', JOBS, page[i]) or ''
        out[#out + 1] = row(page[i], set, ms(page[i + 1]), header(rec) and rec or '')
        bytes = bytes + #rec
      end
    end
    first = first + limit + 1
  until #page <= 2 * limit
  return out
end
return guard(main)
