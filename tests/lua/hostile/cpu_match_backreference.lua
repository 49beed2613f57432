-- expect: flow-limit or flow-memory
string.match(string.rep("a", 1000000), "(a*)(a*)%1%2b")
