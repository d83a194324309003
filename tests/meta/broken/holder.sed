# SPDX-License-Identifier: MIT
# settles: the token alone is compared, where tokens are counted in what may be lost
s/return math.max(token, now_us)/return token/
s/num(token), 'PXAT', num(math.floor(token \/ 1000) + 3600000)/num(token)/
s/ and (holder == ARGV\[2\] or ARGV\[2\] == '\*')//
