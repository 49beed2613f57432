-- expect: flow-memory
return table.create(60000000, 1)
