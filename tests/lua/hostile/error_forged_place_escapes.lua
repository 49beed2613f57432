-- expect: flow-error
error { message = "x", at = "\27[2Ja.lua:1" }
