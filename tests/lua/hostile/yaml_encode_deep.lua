-- expect: request-invalid
local t = table.create(400000, 1)
for _ = 1, 120 do
  t = { t }
end
return #yaml.encode(t)
