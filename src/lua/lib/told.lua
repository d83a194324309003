-- SPDX-License-Identifier: MIT
-- What a listener was told, beside its heartbeat in `alive`: the score is so many quarters of a
-- millisecond less than its end. 0: nothing, or to go on; 1: to be quiet; 2: to stop.

local function told_of(score) return (math.ceil(score) - score) * 4 end

local function told_score(end_ms, told)
  return told > 0 and string.format('%.2f', end_ms - told / 4) or decimal(end_ms)
end
