-- expect: request-invalid
ui.say(string.rep("x", 50000000))
