-- expect: flow-limit or flow-memory
local list = table.create(7000, 1)
while true do
  bit32.bxor(table.unpack(list))
  math.max(table.unpack(list))
end
