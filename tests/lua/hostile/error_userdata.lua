-- expect: flow-error
error(buffer.create(10))
