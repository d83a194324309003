-- Gives back what carries the holder's name and is not in its hands: claims whose reply was lost. One page.
-- KEYS    1 due
-- ARGV    1 database, 2 holder, 3 page (0 first); then the tokens in its hands
-- RETURNS now us, next page (0: that was the last), jobs given back
-- ERRORS  Redis's own; EBROKEN
-- COST    O(running), in pages of about 100
local function main()
  local mine, back = {}, {}
  for i = 4, #ARGV do mine[ARGV[i]] = true end
  local page = call('ZSCAN', RUN, ARGV[3], 'COUNT', BATCH)
  for i = 1, #page[2], 2 do
    local h = parse(call('HGET', HELD, page[2][i]))
    if h and h.holder == ARGV[2] and not mine[num(h.token)] then
      h.id = page[2][i]
      back[#back + 1] = h
    end
  end
  give_back(back)
  return { now_us, tonumber(page[1]), #back }
end
return guard(main)
