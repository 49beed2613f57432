-- expect: flow-limit
local text = string.rep("a,", 300000)
while true do
  string.split(text, ",")
end
