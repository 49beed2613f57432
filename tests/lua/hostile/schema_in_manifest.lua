-- expect: flow-invalid
-- Schemas of collections are compiled while the flow is loaded.
local nietz = require("@nietz")
local properties = {}
for n = 1, 25000 do
  properties["p" .. n] = { type = "string" }
end
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = { notes = { path = "notes/{slug}.yaml", schema = { properties = properties } } },
  run = function() end,
}
