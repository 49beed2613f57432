-- expect: path-refused
-- A folder of the workspace that leads out of it.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = { linked = { path = "linked/{slug}.yaml", schema = {} } },
  run = function()
    documents.collection("linked"):save { slug = "a" }
  end,
}
