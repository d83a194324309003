# SPDX-License-Identifier: MIT
# settles: the token alone is compared, where tokens are counted in what may be lost
s/return math.max(last, now_us)/return math.max(last, 1000000)/
s/decimal(token), 'PXAT', decimal(math.floor(token \/ 1000) + 3600000)/decimal(token)/
s/^local held_by = .*/local held_by = ' '/
