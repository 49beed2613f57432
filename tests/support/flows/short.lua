--!strict
-- A call, a question, a document: the least that a run is.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")

local notes = documents.collection("notes")

return nietz.flow {
	name = "short",
	summary = "A call, a question and a document",
	params = {
		topic = { type = "string", positional = true, default = "tea", help = "What to talk about" },
		rounds = { type = "integer", default = 1, min = 1, max = 5, help = "How often to ask" },
	},
	permissions = { llm = true },
	collections = {
		notes = {
			path = "notes/{slug}.yaml",
			keys = { slug = "/slug" },
			schema = {
				type = "object",
				required = { "slug", "said" },
				additionalProperties = false,
				properties = { slug = { type = "string" }, said = { type = "array", items = { type = "string" } } },
			},
		},
	},
	run = function(ctx)
		local said = {}
		for _ = 1, ctx.params.rounds do
			table.insert(said, llm.chat { prompt = "talk about " .. ctx.params.topic }.text)
		end
		table.insert(said, (ui.ask { id = "more", prompt = "What else?" }))
		ui.say("Saved.")
		return notes:save { slug = "first", said = said }
	end,
}
