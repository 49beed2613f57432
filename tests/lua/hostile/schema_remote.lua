-- expect: flow-invalid
return schema.check({ ["$ref"] = "http://127.0.0.1:1/schema.json" }, 1)
