--!strict
-- Calls, saves and rows of some size. One save is not missed where it cannot be made.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")

local notes = documents.collection("notes")
local rows = documents.collection("rows")

local schema = {
	type = "object",
	required = { "slug", "text" },
	additionalProperties = false,
	properties = {
		slug = { type = "string" },
		text = { type = "string" },
		again = { type = "array", items = { type = "string" } },
	},
}

return nietz.flow {
	name = "fills",
	summary = "Fills a disk",
	permissions = { llm = true },
	collections = {
		notes = { path = "notes/{slug}.yaml", keys = { slug = "/slug" }, schema = schema },
		rows = { path = "rows/{slug}.jsonl", keys = { slug = "/slug" }, schema = schema },
	},
	run = function()
		-- It is large on the disk, and small in the journal, where a text stands once.
		local large = string.rep("large ", 200)
		local kept = pcall(function()
			notes:save({ slug = "large", text = large, again = table.create(20, large) }, { overwrite = true })
		end)
		for _, slug in { "a", "b", "c" } do
			local text = llm.chat({ prompt = slug }).text
			notes:save({ slug = slug, text = text }, { overwrite = true })
			rows:append({ slug = "all", text = text }, { slug = "all" })
		end
		return { kept = kept }
	end,
}
