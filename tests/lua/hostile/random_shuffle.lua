-- expect: flow-limit
return #random.shuffle(table.create(1000000, 1))
