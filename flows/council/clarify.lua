--!strict
--- Before the debate: asks what the council must know, one question at a time, in at most three rounds. A question that is
--- skipped becomes an assumption on the record.

local app = require("./app")
local conversation = require("./conversation")
local dialogue = require("./dialogue")
local random = require("@nietz/random")
local rules = require("./rules")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local small = require("./small")
local translations = require("../common/translations")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local clarify = {}

export type Question = { question: string, about: string, why: string?, default: string }

local FALLBACK_QUESTIONS: { app.Values } = yaml.load("./questions.yaml")
local MAX_QUESTIONS = 3
--- Two questions of a large mind that share more than this are one.
local LARGE_SAME = 0.85
local LONGEST_ANSWER = 2000
--- Words of somebody who does not know: such an answer counts, with low confidence.
local UNSURE = { "i don't know", "i do not know", "i dont know", "don't know", "no idea", "not sure", "unsure" }

local function judgement_schema(is_small: boolean): shape.Shape
	local function line(letters: number): shape.Shape
		return shape.text(3, small.most(is_small, letters))
	end
	return shape.object({ "because", "ambiguous", "questions" }, {
		ambiguous = { type = "boolean" },
		because = shape.list(line(200), 1, 3),
		questions = shape.list(
			shape.object({ "question", "why", "default", "about" }, {
				about = line(40),
				default = { type = "string", maxLength = small.most(is_small, 160) },
				question = line(200),
				why = line(160),
			}),
			0,
			MAX_QUESTIONS
		),
	})
end

--- Returns the questions that were not asked yet. A small mind asks again in other words, and hands the request back.
function clarify.new_questions(raw: { app.Values }, asked: { string }, request: string, is_small: boolean): { Question }
	local seen = table.clone(asked)
	local found: { Question } = {}
	for _, item in raw do
		local question = app.to_line(item.question)
		local again = similarity.repeats(question, seen, if is_small then small.SAME else LARGE_SAME)
			or (is_small and similarity.echoes(question, { request }))
		if #found < MAX_QUESTIONS and #similarity.words(question) >= (if is_small then 2 else 1) and not again then
			table.insert(seen, question)
			local why: string?, default = app.to_line(item.why), app.to_line(item.default or "")
			-- A model that repeats a reason or a default meant it for the other question.
			for _, other in found do
				why = if is_small and why == other.why then nil else why
				default = if is_small and default == other.default then "" else default
			end
			table.insert(found, { question = question, about = app.to_line(item.about), why = why, default = default })
		end
	end
	return found
end

--- Asks a model whether the request is ambiguous, and returns the questions of this round.
local function judge_ambiguity(self: app.App, number: number): ({ Question }, app.Made?)
	local always = self.params.clarify == "always" and number == 1
	local is_small = app.is_small(self, self.moderator)
	local vars: app.Values = if is_small then small.case_vars(self) else { round = number, rounds = rules.ROUNDS }
	vars.most, vars.always = MAX_QUESTIONS, always
	local value, made = app.ask_model(self, {
		prompt = "clarify",
		vars = vars,
		schema = judgement_schema(is_small),
		persona = self.moderator,
		label = self.t("label.clarify"),
		purpose = "clarify",
		temperature = 0.2,
		small = is_small,
		looks = true,
	})
	local asked: { string } = {}
	for _, question in self.doc.clarificationQuestions do
		table.insert(asked, question.question)
	end
	local raw: { app.Values } = {}
	if value ~= nil then
		app.record_event(self, "judged", {
			round = number,
			ambiguous = value.ambiguous,
			reasons = value.because,
			looked = if made then made.looked else nil,
		})
		raw = if value.ambiguous or always then value.questions else {}
	end
	local found = clarify.new_questions(raw, asked, self.doc.requestText, is_small)
	if always and #found == 0 then
		return clarify.new_questions(FALLBACK_QUESTIONS, asked, self.doc.requestText, true), nil
	end
	return found, made
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

local function record_assumption(self: app.App, question: session.Question, skipped: string)
	local default = question.suggestedDefault or ""
	local asked = self.t("assume.asked", { question = question.question })
	-- What was left for later is open: in its place nothing is assumed.
	local assumption = if default ~= "" and question.status == "skipped"
		then `{self.t("assume.default", { default = default })} {asked}`
		else `{self.t("assume.nothing", { about = question.targetAmbiguity })} {asked}`
	app.record_turn(self, {
		sender = app.participant_of(self, self.moderator.name),
		messageType = "assumption_statement",
		content = assumption,
		number = question.roundNumber,
		metadata = {
			assumptionId = random.uuid(),
			questionId = question.questionId,
			rationale = `{self.t("assume.why", { question = question.question, how = skipped })} {question.why or ""}`,
		},
	})
	ui.say(`*{assumption}.*`)
	conversation.tell_answer(self, question, {}, assumption)
end

--- Records the user's answer to a question, or that it was skipped with the assumption that follows.
local function record_answer(self: app.App, question: session.Question, answer: string, status: string)
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
	else
		conversation.tell_answer(self, question, app.hear(self, "answer", answer, `{question.question} →`), nil)
	end
end

--- Asks the user a recorded question until it is answered or skipped.
local function ask_until_settled(self: app.App, question: session.Question, head: string): Settled
	local default = question.suggestedDefault or ""
	local lines: { string } = { head }
	if question.why ~= nil then
		table.insert(lines, self.t("clarify.why", { why = question.why }))
	end
	table.insert(lines, if default ~= "" then self.t("clarify.default", { default = default }) else self.t("clarify.no_default"))
	table.insert(lines, question.question)
	while true do
		local line = dialogue.ask(self.t, "clarify", "clarify", table.concat(lines, "\n\n"), {})
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
			ui.say(self.t("clarify.nothing_to_proceed"))
		elseif line.kind == "empty" and default ~= "" then
			record_answer(self, question, default, "answered")
			return "answered"
		elseif line.kind == "empty" then
			ui.say(self.t("clarify.must_answer"))
		else
			local answer = line.text
			if (utf8.len(answer) or #answer) <= LONGEST_ANSWER then
				record_answer(self, question, answer, "answered")
				return "answered"
			end
			ui.say(self.t("clarify.too_long", { most = LONGEST_ANSWER }))
		end
	end
end

--- Records and asks one question, or only records it as skipped, where the user wants no more questions.
local function ask_question(
	self: app.App,
	round: number,
	place: number,
	question: Question,
	count: number,
	done: Settled?,
	made: app.Made?
): Settled
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
			model = if made then made.model else nil,
			latencySeconds = if made then made.latencySeconds else nil,
		},
	})
	local recorded = session.question(self.doc, id) :: session.Question
	-- "Proceed with defaults" cannot settle a question without one: it is asked all the same.
	if done == "skip all" or (done == "defaults" and question.default ~= "") then
		record_answer(self, recorded, if done == "defaults" then "proceed with defaults" else "skip all", "skipped")
		return done
	end
	return ask_until_settled(
		self,
		recorded,
		self.t("clarify.round", { round = round, rounds = rules.ROUNDS, place = place, count = count })
	)
end

--- Runs the rounds of clarification.
function clarify.run(self: app.App)
	if self.params.clarify == "never" then
		return
	end
	app.record_event(self, "status", { status = "clarifying" })
	for number = 1, rules.ROUNDS do
		local questions, made = judge_ambiguity(self, number)
		if #questions == 0 then
			return
		end
		local done: Settled? = nil
		for place, question in questions do
			local settled = ask_question(self, number, place, question, #questions, done, made)
			if settled == "skip all" or settled == "defaults" then
				done = settled
			end
		end
		app.record_event(self, "round_over", { round = number })
		if done ~= nil then
			return
		end
	end
	ui.say(self.t("clarify.last_round", { rounds = rules.ROUNDS }))
end

--- Returns the questions that were skipped or deferred.
function clarify.skipped_questions(self: app.App): { session.Question }
	local found: { session.Question } = {}
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
	ui.say(translations.counted(self.t, "clarify.revisiting", #questions))
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
			local settled = ask_until_settled(self, question, self.t("clarify.question", { place = place, count = #questions }))
			done = if settled == "skip all" or settled == "defaults" then settled else done
		end
	end
end

return clarify
