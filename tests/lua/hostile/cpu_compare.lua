-- expect: flow-limit or flow-memory
-- Comparing long texts does not look at the clock.
local a, b = string.rep("a", 10000000) .. "a", string.rep("a", 10000000) .. "b"
while true do
  local _ = a < b or a <= b
end
