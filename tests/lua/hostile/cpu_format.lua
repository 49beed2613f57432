-- expect: flow-limit or flow-memory
local text = string.rep("%%", 200000)
while true do
  string.format(text)
end
