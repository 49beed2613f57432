-- expect: flow-error
rawset(json, "encode", print)
