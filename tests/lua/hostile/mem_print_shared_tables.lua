-- expect: request-invalid
local t = { string.rep("x", 4000000) }
print(table.unpack(table.create(7000, t)))
