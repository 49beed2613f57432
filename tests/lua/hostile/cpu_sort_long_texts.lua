-- expect: flow-limit or flow-memory
-- Few texts that are long, and differ at their ends.
local long, list = string.rep("a", 500000), {}
for n = 1, 60 do
  list[n] = long .. n
end
while true do
  for n = 1, 60 do
    list[n], list[61 - n] = list[61 - n], list[n]
  end
  table.sort(list)
end
