# SPDX-License-Identifier: MIT
# claim: does not ask whether a job still waits, or another has it: what ignoring the result of a ZREM would be
s/if score and tonumber(score) <= now_ms and not place/if (not score or tonumber(score) <= now_ms) and not place/
s/tonumber(score) % 1 > 0/tonumber(score or 0) % 1 > 0/
