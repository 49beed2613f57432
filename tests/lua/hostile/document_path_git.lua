-- expect: flow-invalid
-- A flow that declares the repository's own configuration as one of its documents.
local nietz = require("@nietz")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = { config = { path = ".git/config", format = "text", schema = {} } },
  run = function() end,
}
