-- expect: flow-limit or flow-memory
local list = table.create(1000000, 1)
while true do
  table.insert(list, 1, 1)
  table.remove(list, 1)
end
