-- expect: request-invalid
local patterns, value = {}, {}
for n = 1, 50 do
  patterns["^(a|b|ab)*" .. n .. "$"] = true
end
for n = 1, 5000 do
  value[string.rep("ab", 20) .. n] = 1
end
return schema.check({ patternProperties = patterns }, value)
