-- expect: flow-memory
return #string.split(string.rep("a", 4500000), "")
