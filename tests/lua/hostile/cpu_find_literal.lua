-- expect: flow-limit or flow-memory
-- A pattern without special characters takes the plain way inside of the stock find.
local hay, needle = string.rep("a", 4000000), string.rep("a", 2000000) .. "b"
while true do
  assert(not string.find(hay, needle))
end
