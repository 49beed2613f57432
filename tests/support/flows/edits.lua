--!strict
-- Reads a document, waits for an answer, and saves the document one further.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local ui = require("@nietz/ui")

local notes = documents.collection("notes")

return nietz.flow {
	name = "edits",
	summary = "Counts one up",
	collections = {
		notes = {
			path = "notes/{slug}.yaml",
			schema = {
				type = "object",
				additionalProperties = false,
				properties = { slug = { type = "string" }, count = { type = "integer" }, by = { type = "string" } },
			},
		},
	},
	run = function()
		local note = notes:load("one")
		note.by = ui.ask { id = "go", prompt = "Go?" }
		note.count += 1
		notes:save(note)
		return note.count
	end,
}
