--!strict
--- The second layer of the check of replies: a model that looks for an answer which a reply gives away. What it says decides; the soft
--- rules only tell it what they noticed. Where it says nothing usable, there is no verdict, and nothing is shown without one.

local ask = require("../common/ask")
local llm = require("@nietz/llm")
local shape = require("../common/shape")
local template = require("@nietz/template")
local text = require("@nietz/text")

local verifier = {}

-- In this order, because a model that gives its reason first judges better.
local VERDICT = shape.object({ "evidence", "reason", "leaks" }, {
	evidence = { type = "string", maxLength = 400 },
	leaks = { type = "boolean" },
	reason = shape.text(1, 300),
})
--- The longest verdict, in tokens, and what it gets when it is asked for once more: models that think count that, too, and a limit that
--- cuts a verdict is no reason to show what it was about.
local ROOMS = { 4000, 16000 }

export type Verdict = { evidence: string, leaks: boolean, reason: string }
--- What is to be judged: a reply, all that the developer said and showed, and what the rules noticed in the reply.
export type Case = {
	reply: string,
	context: string,
	--- What they showed, as whoever asked has it: long, and the same from turn to turn, so it stands where providers keep it.
	material: string?,
	hints: { string },
	label: string,
	model: string?,
}

--- Whether replies are verified. A small model on this machine does it only where it is named: it was measured to judge no
--- better than chance, at three times the wait.
function verifier.is_available(wanted: boolean, model: string?): boolean
	return wanted and (model ~= nil or string.find(llm.model(), "^local/") == nil)
end

--- Returns what the verifier says of a reply, or nil where it said nothing usable twice.
function verifier.judge_reply(case: Case): Verdict?
	local rules = text.trim(template.render("./prompts/verify.md", {}))
	local prompt = template.render("./prompts/verdict.md", {
		reply = case.reply,
		context = case.context,
		hints = if #case.hints > 0 then case.hints else false,
	})
	for _, room in ROOMS do
		local verdict = ask.value({
			model = case.model,
			system = if case.material ~= nil then `{case.material}\n\n{rules}` else rules,
			prompt = prompt,
			schema = VERDICT,
			label = case.label,
			max_tokens = room,
			repairs = 0,
			temperature = 0,
		})
		if verdict ~= nil then
			return verdict
		end
	end
	return nil
end

return verifier
