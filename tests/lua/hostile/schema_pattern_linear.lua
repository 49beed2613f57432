-- expect: request-invalid
local items = table.create(2000, string.rep("a", 3000))
return schema.check({ items = { pattern = "(a?){300}a{300}[^a]" } }, items)
