-- expect: flow-memory
return #string.split(string.rep("a", 30000000), "")
