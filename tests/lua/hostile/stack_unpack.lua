-- expect: flow-error
return select("#", table.unpack({}, 1, 10000000))
