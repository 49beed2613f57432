-- expect: flow-limit or flow-memory
string.find(string.rep("a", 100000), string.rep("a*", 50) .. "b")
