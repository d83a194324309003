-- Ends jobs that were done.
-- KEYS    1 due
-- ARGV    1 database, 2 holder; then per job: id, token
-- RETURNS now us; then per job: 1 | EGONE
-- ERRORS  Redis's own; EBROKEN
-- COST    O(log N) a job
local function main()
  local out, ids, mine = { now_us }, {}, {}
  call('HLEN', JOBS)
  for i = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
  local helds, scores = call('HMGET', ATTEMPTS, unpack(ids)), call('ZMSCORE', RUN, unpack(ids))
  for i, id in ipairs(ids) do
    local token, holder = ticket(scores[i] and helds[i])
    local held = is_held(token, holder, ARGV[2 * i + 2])
    out[i + 1] = held and 1 or 'EGONE'
    if held then mine[#mine + 1] = id end
  end
  drop(RUN, mine)
  return out
end
return guard(main)
