-- Shows the jobs that run under a holder's name, a page of them. The holder gives back (release) those that are not in
-- its hands: claims whose reply was lost.
-- KEYS    1 due
-- ARGV    1 database, 2 holder, 3 page (0 first)
-- RETURNS now us, next page (0: that was the last); then per job: id, token
-- ERRORS  Redis's own
-- COST    O(running), in pages of about 500
local function main()
  local page = call('ZSCAN', RUN, ARGV[3], 'COUNT', 500)
  local out, ids = { now_us, tonumber(page[1]) }, {}
  for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end
  for first = 1, #ids, 1000 do -- a small set comes as one page, however large small is
    for i, held in ipairs(call('HMGET', ATTEMPTS, unpack(ids, first, math.min(first + 999, #ids)))) do
      local token, holder = ticket(held)
      if holder == ARGV[2] then out[#out + 1], out[#out + 2] = ids[first + i - 1], token end
    end
  end
  return out
end
return guard(main)
