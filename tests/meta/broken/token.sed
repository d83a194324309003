# SPDX-License-Identifier: MIT
# settles: any token will do, and any holder
s/return text and string.sub(text, 2, #first + 1) == first and .*$/return text/
