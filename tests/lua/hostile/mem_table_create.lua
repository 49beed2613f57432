-- expect: flow-memory
return table.create(100000000, 1)
