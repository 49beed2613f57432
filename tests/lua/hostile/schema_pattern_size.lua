-- expect: flow-invalid
-- Patterns that are short to write and immense when they are compiled.
local properties = {}
for n = 1, 300 do
  properties["p" .. n] = { pattern = `((a\{1,50}){n % 7 + 1}\{1,90})\{1,20}` }
end
return schema.check({ properties = properties }, {})
