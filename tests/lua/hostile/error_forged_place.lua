-- expect: flow-error
-- Says that it was raised in a file that the flow may not read.
error { message = "x", at = "../secret.env:1" }
