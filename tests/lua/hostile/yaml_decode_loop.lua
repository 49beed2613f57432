-- expect: flow-limit or flow-memory
local long = "[" .. string.rep("a,", 100000) .. "]"
while true do
  yaml.decode(long)
end
