-- expect: flow-limit
string.find(string.rep("a", 100000), string.rep("a*", 50) .. "b")
