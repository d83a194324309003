# SPDX-License-Identifier: MIT
# settles: any token will do, and any holder
s/return string.find(text, ' ' .. token .. held_by, 2, true) == 2/return text ~= ''/
