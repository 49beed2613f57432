-- expect: flow-error
error(string.rep("x", 20000000))
