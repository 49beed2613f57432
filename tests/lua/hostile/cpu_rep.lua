-- expect: flow-limit or flow-memory
while true do
  string.rep("ab", 500000)
end
