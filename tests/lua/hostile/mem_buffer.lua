-- expect: flow-memory
return buffer.create(1000000000)
