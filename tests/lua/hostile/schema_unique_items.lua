-- expect: request-invalid
-- Comparing each with each would take for ever.
local items = {}
for n = 1, 20000 do
  items[n] = { a = n }
end
assert(#schema.check({ uniqueItems = true }, items) == 0)
