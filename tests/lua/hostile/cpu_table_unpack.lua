-- expect: flow-limit or flow-memory
local list = table.create(7000, 1)
while true do
  table.pack(table.unpack(list))
  pcall(table.unpack, list, 1, 1e9)
  pcall(table.unpack, {}, -1e9, 1e9)
end
