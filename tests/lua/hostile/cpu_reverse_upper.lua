-- expect: flow-limit or flow-memory
local text = string.rep("ab", 500000)
while true do
  text = string.upper(string.reverse(text))
  text = string.lower(text)
end
