--!strict
--- Before the debate: asks what the council must know, one question at a time, in at most three rounds. A question that is
--- skipped becomes an assumption on the record.

local app = require("./app")
local dialogue = require("./dialogue")
local random = require("@nietz/random")
local rules = require("./rules")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local clarify = {}

export type Question = { question: string, about: string, why: string?, default: string }

local FALLBACK_QUESTIONS: { any } = yaml.load("./questions.yaml")
local MAX_QUESTIONS = 3
local LONGEST_ANSWER = 2000
--- Two questions that share more than this are one.
local SAME = 0.6
--- Words of somebody who does not know: such an answer counts, with low confidence.
local UNSURE = { "i don't know", "i do not know", "i dont know", "don't know", "no idea", "not sure", "unsure" }

local SCHEMA = shape.object({ "because", "ambiguous", "questions" }, {
	ambiguous = { type = "boolean" },
	because = shape.list(shape.text(3, 200), 1, 3),
	questions = shape.list(
		shape.object({ "question", "why", "default", "about" }, {
			about = shape.text(3, 40),
			default = { type = "string", maxLength = 160 },
			question = shape.text(3, 200),
			why = shape.text(3, 160),
		}),
		0,
		MAX_QUESTIONS
	),
})

--- Returns the questions that were not asked yet in nearly the same words.
function clarify.new_questions(raw: { any }, asked: { string }, request: string): { Question }
	local seen = table.clone(asked)
	local found: { Question } = {}
	for _, item in raw do
		local question = app.to_line(item.question)
		local again = similarity.repeats(question, seen, SAME) or similarity.echoes(question, { request })
		if #found < MAX_QUESTIONS and #similarity.words(question) >= 2 and not again then
			table.insert(seen, question)
			local why: string?, default = app.to_line(item.why), app.to_line(item.default or "")
			-- A model that repeats a reason or a default meant it for the other question.
			for _, other in found do
				why = if why == other.why then nil else why
				default = if default == other.default then "" else default
			end
			table.insert(found, { question = question, about = app.to_line(item.about), why = why, default = default })
		end
	end
	return found
end

--- Asks a model whether the request is ambiguous, and returns the questions of this round.
local function judge_ambiguity(self: app.App, number: number): { Question }
	local always = self.params.clarify == "always" and number == 1
	local vars = app.prompt_vars(self)
	vars.most, vars.always = MAX_QUESTIONS, always
	local value = app.ask_model(self, {
		prompt = "clarify",
		vars = vars,
		schema = SCHEMA,
		persona = self.moderator,
		label = "Looking for what must be known",
		purpose = "clarify",
		temperature = 0.2,
	})
	local asked: { string } = {}
	for _, question in self.doc.clarificationQuestions do
		table.insert(asked, question.question)
	end
	local raw: { any } = {}
	if value ~= nil then
		app.record_event(self, "judged", { round = number, ambiguous = value.ambiguous, reasons = value.because })
		raw = if value.ambiguous or always then value.questions else {}
	end
	local found = clarify.new_questions(raw, asked, self.doc.requestText)
	return if always and #found == 0 then clarify.new_questions(FALLBACK_QUESTIONS, asked, self.doc.requestText) else found
end

--- How a question ended; the last two end all further ones.
type Settled = "answered" | "skipped" | "deferred" | "skip all" | "defaults"

local function answer_confidence(answer: string, default: string): string
	for _, phrase in UNSURE do
		if string.find(string.lower(answer), phrase, 1, true) ~= nil then
			return "low"
		end
	end
	return if answer == default then "medium" else "high"
end

local function record_assumption(self: app.App, question: any, skipped: string)
	local default = question.suggestedDefault or ""
	local assumption = if default ~= ""
		then `Assuming: {default}`
		else `Nothing is assumed about {question.targetAmbiguity}: the answer must hold either way`
	app.record_turn(self, {
		sender = app.participant_of(self, self.moderator.name),
		messageType = "assumption_statement",
		content = assumption,
		number = question.roundNumber,
		metadata = {
			assumptionId = random.uuid(),
			questionId = question.questionId,
			rationale = `"{question.question}" was {skipped}. {question.why or ""}`,
		},
	})
	ui.say(`*{assumption}.*`)
end

--- Records the user's answer to a question, or that it was skipped with the assumption that follows.
local function record_answer(self: app.App, question: any, answer: string, status: string)
	local skipped = status ~= "answered"
	app.record_turn(self, {
		sender = session.user(self.doc),
		recipient = app.participant_of(self, self.moderator.name),
		messageType = "answer",
		content = answer,
		number = question.roundNumber,
		metadata = {
			answerId = random.uuid(),
			questionId = question.questionId,
			questionStatus = status,
			skipCommand = skipped,
			answerConfidence = if skipped then nil else answer_confidence(answer, question.suggestedDefault or ""),
		},
	})
	if skipped then
		record_assumption(self, question, status)
	end
end

--- Asks the user a recorded question until it is answered or skipped.
local function ask_until_settled(self: app.App, question: any, head: string): Settled
	local default = question.suggestedDefault or ""
	local lines: { string } = { `**{head}** {question.question}` }
	if question.why ~= nil then
		table.insert(lines, `*Why:* {question.why}`)
	end
	table.insert(
		lines,
		if default ~= ""
			then `*Enter:* {default} · \`skip\` · \`defer\` · \`skip all\` · \`proceed with defaults\``
			else "`skip` · `defer` · `skip all` · `proceed with defaults` (this one has no default)"
	)
	while true do
		local line = dialogue.ask("clarify", "clarify", table.concat(lines, "\n"), {})
		if line.kind == "command" then
			if line.name == "skip" or line.name == "skip-all" then
				record_answer(self, question, if line.name == "skip" then "skip" else "skip all", "skipped")
				return if line.name == "skip" then "skipped" else "skip all"
			elseif line.name == "defer" then
				record_answer(self, question, "defer", "deferred")
				return "deferred"
			elseif default ~= "" then
				record_answer(self, question, "proceed with defaults", "skipped")
				return "defaults"
			end
			ui.say("This question has no default to proceed with: answer it, or `skip` it.")
		elseif line.kind == "empty" and default ~= "" then
			record_answer(self, question, default, "answered")
			return "answered"
		elseif line.kind == "empty" then
			ui.say("This question has no default: answer it, or `skip` it.")
		else
			local answer = if line.kind == "address" then `@{line.typed} {line.text}` else (line :: any).text
			if (utf8.len(answer) or #answer) <= LONGEST_ANSWER then
				record_answer(self, question, answer, "answered")
				return "answered"
			end
			ui.say(`That is longer than {LONGEST_ANSWER} letters. Say it shorter.`)
		end
	end
end

--- Records and asks one question, or only records it as skipped, where the user wants no more questions.
local function ask_question(self: app.App, round: number, place: number, question: Question, count: number, done: Settled?): Settled
	local id = random.uuid()
	app.record_turn(self, {
		sender = app.participant_of(self, self.moderator.name),
		recipient = session.user(self.doc),
		messageType = "question",
		content = question.question,
		number = round,
		metadata = {
			questionId = id,
			sequenceInRound = place,
			targetAmbiguity = question.about,
			why = question.why,
			suggestedDefault = if question.default ~= "" then question.default else nil,
		},
	})
	local recorded = session.question(self.doc, id)
	-- "Proceed with defaults" cannot settle a question without one: it is asked all the same.
	if done == "skip all" or (done == "defaults" and question.default ~= "") then
		record_answer(self, recorded, if done == "defaults" then "proceed with defaults" else "skip all", "skipped")
		return done
	end
	return ask_until_settled(self, recorded, `Round {round} of {rules.ROUNDS}, question {place} of {count}.`)
end

--- Runs the rounds of clarification.
function clarify.run(self: app.App)
	if self.params.clarify == "never" then
		return
	end
	app.record_event(self, "status", { status = "clarifying" })
	for number = 1, rules.ROUNDS do
		local questions = judge_ambiguity(self, number)
		if #questions == 0 then
			return
		end
		local done: Settled? = nil
		for place, question in questions do
			local settled = ask_question(self, number, place, question, #questions, done)
			if settled == "skip all" or settled == "defaults" then
				done = settled
			end
		end
		app.record_event(self, "round_over", { round = number })
		if done ~= nil then
			return
		end
	end
	ui.say(`That was round {rules.ROUNDS} of {rules.ROUNDS}: nothing more is asked. What is still open is for the council to weigh.`)
end

--- Returns the questions that were skipped or deferred.
function clarify.skipped_questions(self: app.App): { any }
	local found: { any } = {}
	for _, question in self.doc.clarificationQuestions do
		if question.status == "skipped" or question.status == "deferred" then
			table.insert(found, question)
		end
	end
	return found
end

--- Asks the skipped questions again.
function clarify.revisit(self: app.App)
	app.record_event(self, "status", { status = "clarifying" })
	local questions = clarify.skipped_questions(self)
	ui.say(`Revisiting {#questions} skipped question{if #questions == 1 then "" else "s"}.`)
	local done: Settled? = nil
	for place, question in questions do
		if done == nil or (done == "defaults" and question.suggestedDefault == nil) then
			app.record_turn(self, {
				sender = app.participant_of(self, self.moderator.name),
				recipient = session.user(self.doc),
				messageType = "question",
				content = question.question,
				number = question.roundNumber,
				metadata = { questionId = question.questionId, revisit = true },
			})
			local settled = ask_until_settled(self, question, `Question {place} of {#questions}.`)
			done = if settled == "skip all" or settled == "defaults" then settled else done
		end
	end
end

return clarify
