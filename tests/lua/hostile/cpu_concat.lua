-- expect: flow-limit
local list = table.create(1000000, "")
while true do
  table.concat(list, "")
end
