-- expect: flow-limit or flow-memory
local list = table.create(1000000, "")
while true do
  table.concat(list, "")
end
