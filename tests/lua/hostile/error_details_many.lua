-- expect: flow-error
error { message = "x", details = table.create(1000000, string.rep("x", 1000)) }
