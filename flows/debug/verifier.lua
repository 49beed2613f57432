--!strict
--- The second layer of the check of replies: a model that looks for an answer which a reply gives away. Where it writes nothing
--- valid, the rules alone count.

local app = require("./app")
local llm = require("@nietz/llm")
local shape = require("../common/shape")
local template = require("@nietz/template")

local verifier = {}

-- In this order, because a model that gives its reason first judges better.
local VERDICT = shape.object({ "evidence", "reason", "leaks" }, {
	evidence = { type = "string", maxLength = 400 },
	leaks = { type = "boolean" },
	reason = shape.text(1, 300),
})

export type Verdict = { evidence: string, leaks: boolean, reason: string }

--- Whether replies are verified. A small model on this machine does it only where it is named: it was measured to judge no
--- better than chance, at three times the wait.
function verifier.is_available(wanted: boolean, model: string?): boolean
	return wanted and (model ~= nil or string.find(llm.model(), "^local/") == nil)
end

--- Returns what the verifier says of a reply, or nil where it says nothing valid. `code` is what the developer showed, if anything.
function verifier.judge_reply(reply: string, context: string, label: string, model: string?, code: string?): Verdict?
	return app.ask_model({
		-- Code is long and stays the same from turn to turn: it stands where providers keep it.
		system = if code ~= nil and code ~= "" then template.render("./prompts/code.md", { code = code }) else nil,
		prompt = "verify",
		vars = { reply = reply, context = context },
		schema = VERDICT,
		label = label,
		model = model,
		max_tokens = 400,
	})
end

return verifier
