-- expect: flow-memory
return table.concat(table.create(1000, string.rep("x", 1000000)))
