--!strict
--- An answer without a council: one good prompt. It is what the council is compared with, and what is offered in its place where
--- a council is not worth it.

local app = require("./app")
local ask = require("../common/ask")
local conversation = require("./conversation")
local dialogue = require("./dialogue")
local draft = require("./draft")
local known = require("./known")
local llm = require("@nietz/llm")
local screens = require("./screens")
local shape = require("../common/shape")
local small = require("./small")
local ui = require("@nietz/ui")

local plain = {}

--- How many members, cycles and tokens a member's turn an estimate of a council counts with.
local SEATS, CYCLES, TURN, TASK = 5, 3, 300, 700

--- Returns the schema of an answer: of a large mind one memo, as the council's is.
local function answer_schema(is_small: boolean): shape.Shape
	if not is_small then
		return shape.object({ "against", "memo", "decision", "title" }, {
			against = shape.text(3),
			memo = shape.text(3),
			decision = shape.text(3),
			title = shape.text(3, draft.TITLE),
		})
	end
	return shape.object({ "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }, {
		assumptions = shape.list(shape.text(3, 200), 0, 4),
		decision = shape.text(3, 300),
		next_steps = shape.list(shape.text(3, 200), 1, 6),
		rejected = shape.list(shape.text(3, 240), 1, 4),
		tradeoffs = shape.list(shape.text(3, 240), 1, 4),
	})
end

--- Returns the case, with what of it holds no longer.
function plain.case(self: app.App): string
	local parts = { conversation.case(self) }
	for _, words in known.taken_back(self) do
		table.insert(parts, `They hold no longer: {words}`)
	end
	return table.concat(parts, "\n\n")
end

local function ask_arm(self: app.App, prompt: string, label: string, purpose: string, temperature: number, extra: app.Values): app.Values
	local is_small = app.is_small(self, nil)
	local vars: app.Values = if is_small then small.case_vars(self) else { case = plain.case(self) }
	for name, value in extra do
		vars[name] = value
	end
	vars.least, vars.words = draft.LEAST_WORDS, draft.WORDS
	return screens.as_decision((app.ask_model_or_raise(self, {
		prompt = if is_small and prompt == "plain" then "control" else prompt,
		vars = vars,
		schema = answer_schema(is_small),
		label = label,
		purpose = purpose,
		temperature = temperature,
		small = is_small,
	})))
end

--- Returns one answer of the run's model. Every failure is raised.
function plain.answer(self: app.App, purpose: string, temperature: number): app.Values
	return ask_arm(self, "plain", self.t("label.plain"), purpose, temperature, {})
end

--- Returns the memo of one who has heard nobody, with which a council's answer begins; nil where no reply can be used.
function plain.memo(self: app.App): draft.Memo?
	local value = app.ask_model(self, {
		prompt = "plain",
		vars = { case = plain.case(self), least = draft.LEAST_WORDS, words = draft.WORDS },
		schema = answer_schema(false),
		label = self.t("label.draft"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	return if value ~= nil then draft.memo(value) else nil
end

--- Returns the best that can be made of several answers.
function plain.merge(self: app.App, all: { app.Values }): app.Values
	local answers: { string } = {}
	for _, value in all do
		table.insert(answers, screens.anonymous(self.t, value))
	end
	return ask_arm(self, "merge", self.t("label.merge"), "control", 0.2, { answers = answers })
end

--- Returns about how many calls and tokens a council about this takes. Pure.
function plain.estimate(case_tokens: number): (number, number)
	local calls = 3 + SEATS * CYCLES + 3
	local heard = 0
	for cycle = 1, CYCLES do
		heard += SEATS * (cycle - 1) * SEATS * TURN
	end
	local tokens = calls * (case_tokens + TASK) + heard + 2 * CYCLES * SEATS * TURN + SEATS * CYCLES * TURN
	return calls, math.round(tokens / 1000) * 1000
end

--- Asks whether a council is worth it, and where it is not offers one plain answer. Returns it as text where it was taken.
function plain.instead(self: app.App): string?
	if not self.params.pause or self.params.consider == "never" or app.is_small(self, self.moderator) then
		return nil
	end
	local value = app.ask_model(self, {
		prompt = "consider",
		vars = {},
		schema = shape.object({ "because", "reversible", "dominated", "worth" }, {
			because = shape.text(3),
			reversible = { type = "boolean" },
			dominated = { type = "boolean" },
			worth = { enum = { "council", "plain" } },
		}),
		persona = self.moderator,
		label = self.t("label.consider"),
		purpose = "clarify",
		temperature = 0,
		small = false,
	})
	if value == nil then
		return nil
	elseif value.worth == "council" then
		ui.say(self.t("consider.worth", { because = app.to_line(value.because) }))
		return nil
	end
	local calls, tokens = plain.estimate(llm.count(conversation.case(self)))
	local prompt = table.concat({
		self.t("consider.because", { because = app.to_line(value.because) }),
		self.t("consider.offer", { calls = calls, tokens = tokens }),
		self.t("consider.ask"),
	}, "\n\n")
	while true do
		local line = dialogue.ask(self.t, "consider", "consider", prompt, {})
		if line.kind == "command" and line.name == "council" then
			return nil
		elseif line.kind == "empty" or line.kind == "command" then
			local given = ask.try(function(): (app.Values, nil)
				return plain.answer(self, "plain", 0.2), nil
			end)
			if given == nil then
				-- Then the council is held: it can do with a reply less.
				ui.say(self.t("model.unusable", { who = self.t("label.plain") }))
				return nil
			end
			local text = screens.anonymous(self.t, given)
			ui.say(text)
			return text
		end
		ui.say(self.t("consider.which"))
	end
end

return plain
