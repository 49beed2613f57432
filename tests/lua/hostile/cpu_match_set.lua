-- expect: flow-error
-- One step of the matcher that looks through a long set at each of many letters.
local hay, set = string.rep("a", 8000000), "[" .. string.rep("b", 8000000) .. "a]*"
while true do
  string.match(hay, set)
end
