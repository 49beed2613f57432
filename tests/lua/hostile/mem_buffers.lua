-- expect: flow-memory
local t = {}
while true do
  table.insert(t, buffer.create(1000000))
end
