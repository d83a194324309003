-- SPDX-License-Identifier: MIT
-- Where a walk through a sorted set goes on.
--
-- USES    ids

-- The rank of the first job behind the one with this score and id.
local function rank_after(set, score, id)
  if id == '' then return 0 end
  if time_of(call('ZSCORE', set, id)) == math.ceil(tonumber(score)) then
    return call('ZRANK', set, id) + 1
  end

  -- it is gone: look for its place among those of its score, which are in the order of their bytes
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if bytes_of(call('ZRANGE', set, middle, middle)[1]) > bytes_of(id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
