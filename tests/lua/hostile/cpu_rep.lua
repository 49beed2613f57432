-- expect: flow-limit
while true do
  string.rep("ab", 10000000)
end
