-- expect: request-invalid
local words = table.create(400000, string.rep("a", 64))
return text.nearest(string.rep("b", 64), words)
