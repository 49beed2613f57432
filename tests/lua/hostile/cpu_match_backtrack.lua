-- expect: flow-limit
string.match(string.rep("a", 1000000), ".-.-.-.-.-.-b")
