-- expect: flow-limit
string.match(string.rep("(", 2000000), "%b()")
