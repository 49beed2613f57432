-- expect: request-invalid
-- Each of many values is wrong in many ways.
local all = {}
for n = 1, 100 do
  all[n] = { type = "string", minimum = n }
end
return #schema.check({ items = { allOf = all } }, table.create(20000, 0.5))
