-- expect: flow-limit or flow-memory
return #random.shuffle(table.create(1000000, 1))
