-- expect: flow-limit or flow-memory
local list = table.create(2000000, 1)
while true do
  table.find(list, 2)
  table.maxn(list)
end
