-- expect: flow-limit or flow-memory
local data = buffer.create(20000000)
while true do
  buffer.fill(data, 0, 1)
  buffer.copy(data, 0, data, 1, 19999999)
  pcall(buffer.fill, data, 0, 1, 1e15)
end
