-- expect: request-invalid
local t = {}
t.t = t
return json.encode(t)
