-- expect: request-invalid
local row = { [string.rep("k", 100000)] = 1 }
return json.encode(table.create(10000, row))
