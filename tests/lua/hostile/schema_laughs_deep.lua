-- expect: request-invalid
-- Doubles at each level of the value.
local ref = { properties = { x = { ["$ref"] = "#/$defs/a" } } }
local value = 1
for _ = 1, 60 do
  value = { x = value }
end
local a = { anyOf = { ref, ref }, type = { "object", "string" } }
return schema.check({ ["$defs"] = { a = a }, ["$ref"] = "#/$defs/a" }, value)
