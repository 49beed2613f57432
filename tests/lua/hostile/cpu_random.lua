-- expect: flow-limit or flow-memory
local t = table.create(1000, 1)
while true do
  t = random.shuffle(t)
end
