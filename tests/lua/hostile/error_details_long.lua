-- expect: flow-error
error { message = "x", details = { string.rep("x", 20000000) } }
