-- expect: flow-error
error(print)
