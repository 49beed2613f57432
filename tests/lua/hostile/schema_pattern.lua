-- expect: request-invalid
-- A pattern that must try everything, for each of many texts.
local items = table.create(50000, string.rep("a", 40))
return #schema.check({ items = { pattern = "^(a*)*\\1b$" } }, items)
