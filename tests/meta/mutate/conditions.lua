-- SPDX-License-Identifier: MIT
-- conditions.lua FILE...: prints FILE, first byte, last byte, line and text of every condition, with tabs between.
--
-- A condition is what decides: the test of if, elseif, while and until; the left side of `and` and `or`, and the right
-- side too where the whole is a test; what `not` turns over (and not that turned over: it would be the same again); and
-- every comparison, wherever it stands. So `x and y or z` has `x and y` and x, but y is a value. The parser is that of
-- luacheck.
local parser, decoder = require "luacheck.parser", require "luacheck.decoder"
local COMPARES = { eq = true, ne = true, lt = true, gt = true, le = true, ge = true }

local function conditions(text)
  local found = {}
  -- use: "test" where only its truth matters, "choice" where it is also the value, if it is true
  local function visit(node, use)
    local tag, op = node.tag, node.tag == "Op" and node[1]
    if (use or COMPARES[op]) and tag ~= "Paren" and op ~= "not" then found[#found + 1] = node end
    for i, part in ipairs(node) do
      local of_part
      if tag == "If" and i % 2 == 1 and i < #node or tag == "While" and i == 1 or tag == "Repeat" and i == 2
        or op == "not" or op == "and" and (i == 2 or use == "test") then of_part = "test"
      elseif op == "or" then of_part = use or i == 2 and "choice"
      elseif tag == "Paren" then of_part = use
      end
      if type(part) == "table" then visit(part, of_part) end
    end
  end
  visit((parser.parse(decoder.decode(text))))
  return found
end

for _, name in ipairs(arg) do
  local file = assert(io.open(name, "rb"))
  local text = file:read("*a")
  file:close()
  for _, node in ipairs(conditions(text)) do
    local words = text:sub(node.offset, node.end_offset):gsub("%s+", " ")
    print(table.concat({ name, node.offset, node.end_offset, node.line, words }, "\t"))
  end
end
