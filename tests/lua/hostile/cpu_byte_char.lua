-- expect: flow-limit or flow-memory
local text = string.rep("a", 7000)
while true do
  string.char(string.byte(text, 1, -1))
end
