--!strict
--- Makes the next question. The model is asked in the voice of the session, and its reply is checked before anybody sees it
--- (`reply_check.lua`). Where no reply may be shown, the voice's own question takes its place.

local app = require("./app")
local code = require("./code")
local hints = require("./hints")
local history = require("./history")
local intent = require("./intent")
local json = require("@nietz/json")
local ledger = require("./ledger")
local models = require("./models")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local random = require("@nietz/random")
local reply_check = require("./reply_check")
local stack_trace = require("./stack_trace")
local template = require("@nietz/template")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local question = {}

--- Questions that any voice can ask, by language.
local SHARED_QUESTIONS = yaml.load("./questions.yaml")

--- What a turn names as its model where the question is the voice's own, and no model's.
question.NO_MODEL = "fallback"

--- What is special about this turn; the prompt `note.md` tells it to the model.
export type Notes = {
	opening: boolean?,
	asked_for_answer: boolean?,
	lifeline: boolean?,
	missing_files: { string }?,
	failed_check: { exit: number, output: string }?,
	--- They count it as solved, and say that not all they saw is explained.
	unexplained: boolean?,
	--- What the question goes for, and the step of the ladder of hints that it stands on.
	target: ledger.Target?,
	hint: hints.Hint?,
}
--- `voice` is the name of the voice that it was made in.
export type NextQuestion = { text: string, model: string, quote: quotes.Quote?, voice: string }

--- Returns the questions that a voice can ask without a model: its own, or the shared ones where it has none in this language or
--- in English. Fails where `fallback` of a persona is no list of questions.
function question.own_questions(voice: personas.Persona, lang: string): { string }
	local own = voice.meta.fallback
	if own == nil or own == json.null then
		own = SHARED_QUESTIONS
	end
	local list = if type(own) ~= "table" or #own > 0 then false else own[lang] or own.en or SHARED_QUESTIONS[lang] or SHARED_QUESTIONS.en
	local right = type(list) == "table" and #list > 0
	for _, one in if right then list else {} do
		right = right and type(one) == "string" and text.trim(one) ~= ""
	end
	if not right then
		nietz.fail(
			`{voice.source}: \`fallback\` is no list of questions by language`,
			'fallback: { en: ["What did you see?"] }, or take it out'
		)
	end
	return list
end

--- Returns a question that needs no model, one that was not used yet as long as there is one.
local function fallback_question(self: app.App): string
	local all = question.own_questions(app.voice(self), self.lang)
	local fresh: { string } = {}
	for _, one in all do
		if table.find(self.already_used, one) == nil then
			table.insert(fresh, one)
		end
	end
	local chosen = random.choice(if #fresh > 0 then fresh else all)
	table.insert(self.already_used, chosen)
	return chosen
end

--- Returns a quote to offer to the model, where the response has a mood that one fits; or nil.
local function pick_quote(self: app.App, response: string?): quotes.Quote?
	local context = if response then intent.quote_context(response) else nil
	if context == nil then
		return nil
	end
	return quoting.pick(context, self.lang, self.already_used)
end

--- Returns the next question after a response; without one, the first of the session.
function question.next(self: app.App, response: string?, notes: Notes): NextQuestion
	local voice = app.voice(self)
	local quote = if notes.failed_check then nil else pick_quote(self, response)
	local material = code.for_prompt(self)
	local system = template.render("./prompts/system.md", { language = self.t("language") })
	local note = template.render("./prompts/note.md", {
		opening = notes.opening or false,
		concept = response ~= nil and intent.asks_for_concept(response),
		asked = notes.asked_for_answer or false,
		lifeline = notes.lifeline or false,
		missing = if notes.missing_files and #notes.missing_files > 0 then table.concat(notes.missing_files, ", ") else false,
		verified = notes.failed_check or false,
		unexplained = notes.unexplained or false,
		quote = quote or false,
		target = notes.target or false,
		hint = notes.hint or false,
		-- Where turns were summarised, what they came to stands here in the developer's words.
		known = if self.summary then ledger.for_prompt(self) or false else false,
	})
	local messages = history.messages(self)
	history.summarise(self, history.token_count((material or "") .. system .. note .. voice.body, messages) + reply_check.EXPECTED_TOKENS)
	messages = history.messages(self)
	local last = text.trim(stack_trace.shorten(response or "") .. "\n\n" .. text.trim(note))
	if response == nil then
		messages[1].content = text.trim(messages[1].content .. "\n\n" .. last)
	else
		table.insert(messages, { role = "user", content = last })
	end
	local found = reply_check.ask(self, {
		voice = voice,
		model = models.for_question(self),
		material = material,
		system = system,
		messages = messages,
		quote = quote,
	})
	if found.text ~= nil then
		local carried = if quote and quoting.quoted_part(found.text, quote) then quote else nil
		if carried ~= nil then
			table.insert(self.already_used, carried.text)
		end
		return { text = found.text, model = found.model, quote = carried, voice = voice.name }
	end
	return { text = fallback_question(self), model = question.NO_MODEL, quote = nil, voice = voice.name }
end

return question
