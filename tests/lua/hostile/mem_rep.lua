-- expect: flow-memory
return string.rep("x", 1000000000)
