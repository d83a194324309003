-- Shows the jobs that run under a holder's name, a page at a time. The holder releases those that
-- it does not know: the replies to their claims were lost.
--
-- KIND    single
-- ROLE    listener
-- USES    answer
-- KEYS    due none
-- READS   run attempts
-- ARGV    database
--         holder
--         page            0: the first
-- RETURNS now_us
--         next_page       0: that was the last
--         then per job: id, token
-- ERRORS  Redis's own
-- COST    O(running), in pages of about 500
local function main()
  local page = call('ZSCAN', RUN, ARGV[3], 'COUNT', 500)
  local out, ids = { now_us, tonumber(page[1]) }, {}
  for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end

  -- a small set comes as one page, whatever COUNT says
  for first = 1, #ids, 1000 do
    local texts = call('HMGET', ATTEMPTS, unpack(ids, first, math.min(first + 999, #ids)))
    for i, text in ipairs(texts) do
      local token, holder = string.match(text or '', '^[12] (%d+) (%S+) ')
      if holder == ARGV[2] then out[#out + 1], out[#out + 2] = ids[first + i - 1], token end
    end
  end
  return out
end
return answer(main)
