-- expect: flow-limit or flow-memory
local list = table.create(200, string.rep("x", 20000))
local pattern = string.rep("%s%99.99f%q", 66)
while true do
  pcall(string.format, pattern, table.unpack(list))
  pcall(string.format, string.rep("%99d", 200), table.unpack(table.create(200, 1)))
end
