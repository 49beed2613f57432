--!strict
--- Makes the next question. The model is asked in the voice of the session, and both layers check its reply before anybody sees
--- it. Where three replies in a row give the answer away or were asked before, the voice's own question takes their place.

local app = require("./app")
local code = require("./code")
local history = require("./history")
local intent = require("./intent")
local json = require("@nietz/json")
local leak_rules = require("./leak_rules")
local list = require("../common/list")
local llm = require("@nietz/llm")
local models = require("./models")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local random = require("@nietz/random")
local stack_trace = require("./stack_trace")
local template = require("@nietz/template")
local text = require("@nietz/text")
local verifier = require("./verifier")
local yaml = require("@nietz/yaml")

local question = {}

--- Questions that any voice can ask, by language.
local SHARED_QUESTIONS = yaml.load("./questions.yaml")

--- What a turn names as its model where the question is the voice's own, and no model's.
question.NO_MODEL = "fallback"

--- How often a reply that was refused is asked for again.
local RETRIES = 2
--- The longest reply, in tokens.
local MAX_TOKENS = 500

--- What is special about this turn; the prompt `note.md` tells it to the model.
export type Notes = {
	opening: boolean?,
	asked_for_answer: boolean?,
	lifeline: boolean?,
	missing_files: { string }?,
	failed_check: { exit: number, output: string }?,
	--- They count it as solved, and say that not all they saw is explained.
	unexplained: boolean?,
	--- They asked for a hint: the open question is put narrower.
	hint: boolean?,
}
export type NextQuestion = { text: string, model: string, quote: quotes.Quote? }

--- Returns everything that the developer said and showed: none of it can be given away.
function question.known_text(self: app.App): string
	local parts = { self.doc.problemDescription }
	for _, turn in self.doc.transcript do
		table.insert(parts, turn.response)
	end
	for _, file in self.code_files do
		table.insert(parts, file.text)
	end
	return table.concat(parts, "\n")
end

--- Returns whether a question was asked before, in the same words.
local function is_repeat(self: app.App, reply: string): boolean
	local asked = intent.normalize(reply)
	return list.some(self.doc.transcript, function(turn): boolean
		return intent.normalize(turn.question) == asked
	end)
end

--- Returns why a reply must not be shown, or nil.
local function objection(self: app.App, reply: string, quote: quotes.Quote?): string?
	if is_repeat(self, reply) then
		return "you have asked it before, and they have answered it; ask about something else"
	end
	local carried = if quote then quoting.quoted_part(reply, quote) else nil
	local leak = leak_rules.find_leak(reply, question.known_text(self), carried)
	if leak ~= nil then
		return `{leak.reason} ("{leak.excerpt}")`
	elseif verifier.is_available(self.params.verifier, self.params.verifier_model) then
		local files, said = {}, { self.doc.problemDescription }
		for _, file in self.code_files do
			table.insert(files, `{file.path}\n{file.excerpt}`)
		end
		for _, turn in self.doc.transcript do
			table.insert(said, `Asked: {turn.question}\nAnswered: {turn.response}`)
		end
		-- The code comes first, because it stays the same from turn to turn and providers cache what a prompt begins with.
		local most = math.floor(self.context_tokens)
		local context = text.truncate(table.concat(files, "\n\n"), most) .. "\n\n" .. text.truncate(table.concat(said, "\n\n"), most)
		local verdict = verifier.judge_reply(reply, text.trim(context), self.t("doing.verifying"), self.params.verifier_model)
		if verdict ~= nil and verdict.leaks then
			return verdict.reason
		end
	end
	return nil
end

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
	local system = template.render("./prompts/system.md", {
		language = self.t("language"),
		code = if #self.code_files > 0 then code.for_prompt(self) else false,
	})
	local note = template.render("./prompts/note.md", {
		opening = notes.opening or false,
		concept = response ~= nil and intent.asks_for_concept(response),
		asked = notes.asked_for_answer or false,
		lifeline = notes.lifeline or false,
		missing = if notes.missing_files and #notes.missing_files > 0 then table.concat(notes.missing_files, ", ") else false,
		verified = notes.failed_check or false,
		unexplained = notes.unexplained or false,
		hint = notes.hint or false,
		quote = quote or false,
	})
	local messages = history.messages(self)
	history.summarise(self, history.token_count(system .. note .. voice.body, messages) + MAX_TOKENS)
	messages = history.messages(self)
	local last = text.trim(stack_trace.shorten(response or "") .. "\n\n" .. text.trim(note))
	if response == nil then
		messages[1].content = text.trim(messages[1].content .. "\n\n" .. last)
	else
		table.insert(messages, { role = "user", content = last })
	end
	local asked_model = models.for_question(self)
	for try = 0, RETRIES do
		local reply = llm.chat({
			model = asked_model,
			persona = voice,
			vars = { lang = self.lang },
			system = system,
			messages = messages,
			max_tokens = MAX_TOKENS,
		})
		local said = text.trim(reply.text)
		local reason = objection(self, said, quote)
		if reason == nil then
			local carried = if quote and quoting.quoted_part(said, quote) then quote else nil
			if carried ~= nil then
				table.insert(self.already_used, carried.text)
			end
			return { text = said, model = reply.model, quote = carried }
		end
		if try < RETRIES then
			messages = table.clone(messages)
			table.insert(messages, { role = "assistant", content = if said == "" then "…" else said })
			table.insert(messages, {
				role = "user",
				content = template.render("./prompts/again.md", { reason = reason, language = self.t("language") }),
			})
		end
	end
	return { text = fallback_question(self), model = question.NO_MODEL, quote = nil }
end

return question
