-- expect: request-invalid
return json.encode(table.create(10000, string.rep("x", 1000000)))
