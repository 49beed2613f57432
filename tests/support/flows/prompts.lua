--!strict
-- Calls by prompt files: two that stand alone, one that depends on the first of them; then a question.
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

return nietz.flow {
	name = "prompts",
	summary = "Calls by prompt files, then a question",
	permissions = { llm = true },
	run = function()
		local one = llm.chat { prompt = template.render("./prompts/one.md", {}) }
		local two = llm.chat { prompt = template.render("./prompts/two.md", {}) }
		local upon = llm.chat { prompt = "upon " .. one.text }
		local apart = llm.chat { prompt = "apart " .. two.text }
		local answer = ui.ask { id = "go-on", prompt = "Go on?" }
		return { upon.text, apart.text, answer }
	end,
}
