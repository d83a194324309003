-- SPDX-License-Identifier: MIT
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "struct", "bit", "cjson", "cmsgpack" }
max_line_length = 120
-- no script uses all of the prelude
ignore = { "211" }
