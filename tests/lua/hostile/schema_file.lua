-- expect: flow-invalid
return schema.check({ ["$ref"] = "file:///etc/passwd" }, 1)
