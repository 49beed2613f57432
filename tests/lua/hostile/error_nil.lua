-- expect: flow-error
error(nil)
