-- expect: flow-limit or flow-memory
-- Quadratic in the stock library.
local text, separator = string.rep("a", 4000000), string.rep("a", 2000000) .. "b"
while true do
  string.split(text, separator)
end
