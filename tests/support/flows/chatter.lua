--!strict
-- One call; its failure is told and handled, or ends the run.
local nietz = require("@nietz")
local llm = require("@nietz/llm")

return nietz.flow {
	name = "chatter",
	summary = "Calls a model once",
	params = { handle = { type = "boolean" } },
	permissions = { llm = true },
	run = function(ctx)
		if ctx.params.handle then
			local ok, problem: any = pcall(llm.chat, { prompt = "hello" })
			return if ok then "fine" else problem.code
		end
		return llm.chat { prompt = "hello" }.text
	end,
}
