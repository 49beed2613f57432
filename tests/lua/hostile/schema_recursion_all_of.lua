-- expect: flow-invalid
return schema.check({ allOf = { { ["$ref"] = "#" }, { ["$ref"] = "#" } } }, 1)
