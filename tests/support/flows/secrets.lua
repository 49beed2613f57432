--!strict
-- Lets a key through every door that there is.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local notes = documents.collection("notes")
local rows = documents.collection("rows")
local text = { type = "string" }

return nietz.flow {
	name = "secrets",
	summary = "Plants a key everywhere",
	params = { topic = { type = "string", positional = true, required = true } },
	permissions = { llm = true },
	collections = {
		notes = {
			path = "notes/{slug}.yaml",
			schema = { type = "object", properties = { slug = text, text = text, ["PLANTED"] = text } },
		},
		rows = { path = "rows.jsonl", schema = { type = "object" } },
	},
	run = function(ctx: nietz.Context)
		ui.status("status PLANTED")
		ui.progress("progress PLANTED", 1, 2)
		local answer = ui.ask { id = "secret", prompt = "Tell me PLANTED", default = "PLANTED" }
		ui.say("You said " .. answer .. " and PLANTED", { from = "PLANTED" })
		local old = notes:load("old")
		local reply = llm.chat {
			system = "PLANTED",
			prompt = template.render("./secrets/prompt.md") .. ctx.params.topic .. answer .. old.text,
			stream = true,
			label = "PLANTED",
			tools = {
				give = {
					description = "PLANTED",
					parameters = { type = "object" },
					run = function()
						return "PLANTED"
					end,
				},
			},
		}
		notes:save { slug = "new", text = reply.text .. answer, ["PLANTED"] = "PLANTED" }
		rows:append { what = reply.text, planted = "PLANTED" }
		local ok, problem = pcall(nietz.fail, "PLANTED", "PLANTED")
		assert(not ok)
		ui.say(problem.message)
		return { text = reply.text, planted = "PLANTED", topic = ctx.params.topic, old = old.text }
	end,
}
