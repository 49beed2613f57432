-- expect: flow-error
error { message = string.rep("x", 20000000), hint = string.rep("y", 10000000) }
