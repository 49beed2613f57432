-- expect: flow-limit or flow-memory
-- Quadratic in the stock library.
local hay, needle = string.rep("a", 4000000), string.rep("a", 2000000) .. "b"
while true do
  assert(not string.find(hay, needle, 1, true))
end
