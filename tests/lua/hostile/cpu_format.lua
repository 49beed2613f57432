-- expect: flow-limit
local text = string.rep("%%", 2000000)
while true do
  string.format(text)
end
