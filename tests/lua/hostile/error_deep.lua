-- expect: flow-error
local t = {}
t.t = t
error(t)
