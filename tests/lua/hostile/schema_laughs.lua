-- expect: flow-invalid
-- Each step of forty refers twice to the next.
local defs = { s40 = { type = "string" } }
for n = 0, 39 do
  local ref = { ["$ref"] = "#/$defs/s" .. n + 1 }
  defs["s" .. n] = { anyOf = { ref, ref } }
end
return schema.check({ ["$defs"] = defs, ["$ref"] = "#/$defs/s0" }, 1)
