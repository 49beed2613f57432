-- expect: flow-limit or flow-memory
local text = string.rep("a,", 300000)
while true do
  string.split(text, ",")
end
