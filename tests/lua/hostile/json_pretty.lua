-- expect: request-invalid
-- Each value on a line of its own, indented as deep as may be.
local t = table.create(400000, 1)
for _ = 1, 120 do
  t = { t }
end
return #json.encode(t, { pretty = true })
