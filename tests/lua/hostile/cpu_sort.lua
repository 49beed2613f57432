-- expect: flow-limit or flow-memory
local list = {}
for n = 1, 1000 do
  list[n] = string.rep("a", 20000) .. n
end
while true do
  table.sort(list)
end
