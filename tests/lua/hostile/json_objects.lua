-- expect: request-invalid
-- Many small objects, which take more memory than they seem to.
local t = {}
for n = 1, 100000 do
  t[n] = { a = 1 }
end
return #json.encode(t)
