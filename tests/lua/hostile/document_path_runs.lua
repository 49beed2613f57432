-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = { runs = { path = ".nietz/runs/{run}/journal.jsonl", schema = {} } },
  run = function() end,
}
