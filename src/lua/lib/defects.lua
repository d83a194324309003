-- SPDX-License-Identifier: MIT
-- What is wrong with a job that was not left as the scripts leave it.

-- The defect of a job, as check.lua names it, and its sets, with their scores; nil: it has none, or
-- is gone.
local function defect_of(id)
  local sets = {}
  for _, set in ipairs({ DUE, RUN, DEAD }) do
    local score = call('ZSCORE', set, id)
    if score then sets[#sets + 1], sets[set] = set, time_of(score) end
  end

  if call('HEXISTS', JOBS, id) == 0 then
    if #sets > 0 then return 'record', sets end
    return call('HEXISTS', ATTEMPTS, id) == 1 and 'attempt' or nil, sets
  end
  if #sets == 0 then return 'none', sets end
  if #sets > 1 then return 'many', sets end
  return sets[RUN] and call('HEXISTS', ATTEMPTS, id) == 0 and 'holder' or nil, sets
end
