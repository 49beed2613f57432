-- expect: flow-error
rawset(table, "sort", print)
