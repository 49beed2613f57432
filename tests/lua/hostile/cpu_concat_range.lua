-- expect: flow-limit or flow-memory
local empty = table.create(100000, "")
while true do
  pcall(table.concat, {}, "", 1, 1e9)
  pcall(table.concat, empty, "", 1, 1e15)
end
