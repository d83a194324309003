# SPDX-License-Identifier: MIT
# settles: any token will do
s/out\[i\] = h and h\.ticket == ARGV\[[^]]*\] and h or false/out[i] = h or false/
s/ and ticket(helds\[i\]) == ARGV\[2 \* i + 1\]/ and true/
