-- expect: request-invalid
return table.create(1000000, "x")
