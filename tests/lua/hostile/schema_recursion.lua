-- expect: flow-invalid
-- A schema that refers to itself without an end.
return schema.check({ ["$ref"] = "#" }, 1)
