-- expect: flow-limit or flow-memory
string.match(string.rep("(", 2000000), "%b()")
