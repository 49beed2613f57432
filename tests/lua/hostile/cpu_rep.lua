-- expect: flow-limit
while true do
  string.rep("ab", 500000)
end
