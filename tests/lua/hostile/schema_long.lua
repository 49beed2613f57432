-- expect: flow-invalid
local properties = {}
for n = 1, 25000 do
  properties["p" .. n] = { type = "string" }
end
return schema.check({ properties = properties }, {})
