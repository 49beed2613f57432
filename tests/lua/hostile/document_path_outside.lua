-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = { notes = { path = "../notes/{slug}.yaml", schema = {} } },
  run = function() end,
}
