# SPDX-License-Identifier: MIT
# settles: any token will do, and any holder
s/return text and string.sub(text, 1, #first) == first/return text/
