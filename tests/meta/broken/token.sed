# SPDX-License-Identifier: MIT
# settles: any token will do, and any holder
s/return token and token == claimed_token and (holder == ARGV\[2\] or ARGV\[2\] == '\*')/return token/
