-- expect: request-invalid
local t = {}
t.t = t
return t
