-- expect: flow-limit
-- The rules of a document never end.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = {
    notes = {
      path = "notes/{slug}.yaml",
      schema = {},
      rules = function()
        while true do
        end
      end,
    },
  },
  run = function()
    documents.collection("notes"):save { slug = "a" }
  end,
}
