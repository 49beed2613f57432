-- expect: flow-limit
local t = table.create(1000, 1)
while true do
  t = random.shuffle(t)
end
