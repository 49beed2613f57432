-- expect: flow-memory
return (string.gsub(string.rep("a", 1000000), "a", string.rep("b", 1000)))
