-- expect: flow-error
return collectgarbage("count")
