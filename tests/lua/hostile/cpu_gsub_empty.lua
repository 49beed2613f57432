-- expect: flow-limit or flow-memory
local text = string.rep("a", 8000000)
while true do
  string.gsub(text, "", "")
end
