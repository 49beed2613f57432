-- expect: flow-error
getfenv(1).print = nil
