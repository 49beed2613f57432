-- expect: flow-limit or flow-memory
local text = string.rep("a", 8000000)
while true do
  for _ in string.gmatch(text, "") do
  end
end
