-- expect: flow-limit or flow-memory
local list = table.create(20000, 1)
while true do
  list = table.clone(list)
  table.clear(table.create(20000, 1))
end
