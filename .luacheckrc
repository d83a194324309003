-- SPDX-License-Identifier: MIT
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "struct", "bit", "cjson", "cmsgpack" }
max_line_length = 100
-- the files of lib make names that others use
files["**/lib/*.lua"] = { ignore = { "211", "231" } }
