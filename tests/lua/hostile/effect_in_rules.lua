-- expect: permission-refused
-- Rules are called by the host when a document is saved; what they do is still the flow's, at the gate.
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local documents = require("@nietz/documents")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  collections = {
    notes = {
      path = "notes/{slug}.yaml",
      schema = {},
      rules = function()
        llm.chat { prompt = "not permitted" }
        return {}
      end,
    },
  },
  run = function()
    documents.collection("notes"):save { slug = "a" }
  end,
}
