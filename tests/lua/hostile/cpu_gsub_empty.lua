-- expect: flow-limit
local text = string.rep("a", 8000000)
while true do
  string.gsub(text, "", "")
end
