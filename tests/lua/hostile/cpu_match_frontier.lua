-- expect: flow-limit or flow-memory
local text = string.rep("a ", 1000000)
while true do
  for _ in string.gmatch(text, "%f[%w]%w+%f[^%w]") do
  end
end
