--!strict
--- The second layer of the check: a model that reads a reply for leaks. What it cannot say, it does not say.

local app = require("./app")
local llm = require("@nietz/llm")
local shape = require("../common/shape")

local verifier = {}

-- In this order: a model that has given its reason first judges better.
local VERDICT = shape.object({ "evidence", "reason", "leaks" }, {
	evidence = { type = "string", maxLength = 400 },
	leaks = { type = "boolean" },
	reason = shape.text(1, 300),
})

export type Verdict = { evidence: string, leaks: boolean, reason: string }

--- Returns whether there is a verifier. A small model on this machine is none unless it is named: it was measured to judge
--- no better than chance, at three times the wait.
function verifier.reads(wanted: boolean, model: string?): boolean
	return wanted and (model ~= nil or string.find(llm.model(), "^local/") == nil)
end

--- Returns what the verifier says of a reply, or nil where it says nothing valid.
function verifier.read(reply: string, context: string, label: string, model: string?): Verdict?
	return app.think({
		prompt = "verify",
		vars = { reply = reply, context = context },
		schema = VERDICT,
		label = label,
		model = model,
		max_tokens = 400,
	})
end

return verifier
