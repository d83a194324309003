-- Shows the live listeners of a queue: those that are members, by their names, then who else holds
-- jobs of it.
--
-- KIND    single, read-only
-- ROLE    monitor
-- USES    answer attempts
-- KEYS    due none
-- READS   listeners run attempts
-- ARGV    database
--         then per listener: name
--             name            of one that is alive, as alive has answered
-- RETURNS now_us
--         then per listener: name, since_ms, n_held
--             since_ms        when it entered; 0: it is no member
--             n_held          how many jobs it runs, of the first 10000 whose leases end
-- ERRORS  Redis's own
-- COST    O(listeners), and O(1) a job that runs, 1 us each
local LOOKED_AT = 10000

-- The number of jobs of each holder, and the holders in the order in which they were met.
local function holders_count()
  local first, holders, n_held = '(' .. decimal(now_ms), {}, {}
  for offset = 0, LOOKED_AT - BATCH, BATCH do
    local ids = call('ZRANGEBYSCORE', RUN, first, '+inf', 'LIMIT', offset, BATCH)
    local texts = #ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
    for _, text in ipairs(texts) do
      local attempt = text and attempt_read(text)
      if attempt and not n_held[attempt.holder] then
        holders[#holders + 1], n_held[attempt.holder] = attempt.holder, 0
      end
      if attempt then n_held[attempt.holder] = n_held[attempt.holder] + 1 end
    end
    if #ids < BATCH then break end
  end
  return holders, n_held
end

local function main()
  local key, out, shown = BASE .. 'listeners', { now_us }, {}
  local holders, n_held = holders_count()

  for at = 2, #ARGV do
    local name = ARGV[at]
    local since_ms = call('ZSCORE', key, name)
    if since_ms then
      out[#out + 1], out[#out + 2], out[#out + 3] = name, time_of(since_ms), n_held[name] or 0
      shown[name] = true
    end
  end
  for _, name in ipairs(holders) do
    if not shown[name] then
      out[#out + 1], out[#out + 2], out[#out + 3] = name, 0, n_held[name]
    end
  end
  return out
end
return answer(main)
