# SPDX-License-Identifier: MIT
# claim: tokens are counted in what may be lost, and do not go by the clock
s/return math.max(last, now_us)/return math.max(last, 1000000)/
s/decimal(token), 'PXAT', decimal(math.floor(token \/ 1000) + 3600000)/decimal(token)/
