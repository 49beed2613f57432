--!strict
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")
local task = require("@nietz/task")
local personas = require("@nietz/personas")

return nietz.flow {
	name = "second-opinion",
	summary = "Two voices on one question, and what they disagree about",
	params = {
		question = { type = "string", positional = true, help = "What to ask" },
		rounds = { type = "integer", default = 1, min = 1, max = 5, help = "How often each speaks" },
	},
	permissions = { llm = true },
	run = function(ctx)
		local said = {}
		for round = 1, ctx.params.rounds do
			local replies = task.all {
				architect = function()
					return llm.chat { persona = personas.get("architect"), prompt = ctx.params.question }
				end,
				security = function()
					return llm.chat { persona = personas.get("security"), prompt = ctx.params.question }
				end,
			}
			for who, reply in replies do
				table.insert(said, `{who}: {reply.text}`)
			end
		end
		local split = llm.chat {
			prompt = table.concat(said, "\n\n"),
			schema = {
				type = "object",
				required = { "disagreements" },
				properties = {
					disagreements = { type = "array", items = { type = "string" } },
				},
			},
		}
		for _, point in split.value.disagreements do
			ui.say("- " .. point)
		end
		return split.value
	end,
}
