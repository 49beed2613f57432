-- expect: request-invalid
local properties = {}
for n = 1, 100000 do
  properties["p" .. n] = { type = "string" }
end
return schema.check({ properties = properties }, {})
