--!strict
--- How the next question is made: the model is asked in the voice of the session, its reply is checked by both layers
--- before anybody sees it, and where three in a row give the answer away or were asked before, the voice's own question takes their place.

local app = require("./app")
local code = require("./code")
local history = require("./history")
local json = require("@nietz/json")
local leaks = require("./leaks")
local list = require("../common/list")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local random = require("@nietz/random")
local template = require("@nietz/template")
local text = require("@nietz/text")
local trace = require("./trace")
local verifier = require("./verifier")
local words = require("./words")
local yaml = require("@nietz/yaml")

local question = {}

--- What any voice can ask, by language.
local ANYBODY_S = yaml.load("./questions.yaml")

--- How often a reply that gives the answer away is asked for again.
local AGAIN = 2
--- The longest reply, in tokens.
local LONGEST = 500

export type Notes = {
	opening: boolean?,
	asked: boolean?,
	lifeline: boolean?,
	missing: { string }?,
	verified: { exit: number, output: string }?,
}
export type Asked = { text: string, model: string, quote: quotes.Quote? }

--- Returns all that the developer said and showed: what stands in it cannot be given away.
function question.known(self: app.App): string
	local parts = { self.doc.problemDescription }
	for _, turn in self.doc.transcript do
		table.insert(parts, turn.response)
	end
	for _, file in self.code do
		table.insert(parts, file.text)
	end
	return table.concat(parts, "\n")
end

--- Returns whether a question was asked before, in the same words.
local function is_repeat(self: app.App, reply: string): boolean
	local asked = words.plain(reply)
	return list.some(self.doc.transcript, function(turn): boolean
		return words.plain(turn.question) == asked
	end)
end

--- Returns why a reply must not be shown, or nil.
local function fault(self: app.App, reply: string, quote: quotes.Quote?): string?
	if is_repeat(self, reply) then
		return "you have asked it before, and they have answered it; ask about something else"
	end
	local carried = if quote then quoting.carried(reply, quote) else nil
	local leak = leaks.find(reply, question.known(self), carried)
	if leak ~= nil then
		return `{leak.reason} ("{leak.excerpt}")`
	elseif verifier.reads(self.params.verifier, self.params.verifier_model) then
		local files, said = {}, { self.doc.problemDescription }
		for _, file in self.code do
			table.insert(files, `{file.path}\n{file.shown}`)
		end
		for _, turn in self.doc.transcript do
			table.insert(said, `Asked: {turn.question}\nAnswered: {turn.response}`)
		end
		-- The code first: what stays as it is can be taken from a cache, turn after turn.
		local most = math.floor(self.window)
		local context = text.truncate(table.concat(files, "\n\n"), most) .. "\n\n" .. text.truncate(table.concat(said, "\n\n"), most)
		local verdict = verifier.read(reply, text.trim(context), self.t("doing.verifying"), self.params.verifier_model)
		if verdict ~= nil and verdict.leaks then
			return verdict.reason
		end
	end
	return nil
end

--- Returns the questions that a voice asks by itself: its own, and where it has none in this language or in English,
--- anybody's. What is no list of questions is refused.
function question.of(voice: personas.Persona, lang: string): { string }
	local own = voice.meta.fallback
	if own == nil or own == json.null then
		own = ANYBODY_S
	end
	local list = if type(own) ~= "table" or #own > 0 then false else own[lang] or own.en or ANYBODY_S[lang] or ANYBODY_S.en
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

--- Returns a question of the voice's own, one that was not asked yet as long as there is one.
local function fallback(self: app.App): string
	local all = question.of(app.voice(self), self.lang)
	local fresh: { string } = {}
	for _, one in all do
		if table.find(self.given, one) == nil then
			table.insert(fresh, one)
		end
	end
	local chosen = random.choice(if #fresh > 0 then fresh else all)
	table.insert(self.given, chosen)
	return chosen
end

--- Returns the quote to offer after a response, in its language: now and then also for going on at all.
local function offer(self: app.App, response: string?): quotes.Quote?
	local context = if response then words.context(response) else nil
	if context == nil then
		return nil
	end
	return quoting.pick(context, self.lang, self.given)
end

--- Returns the next question after a response; without one, the first of the session.
function question.next(self: app.App, response: string?, notes: Notes): Asked
	local voice = app.voice(self)
	local quote = if notes.verified then nil else offer(self, response)
	local system = template.render("./prompts/system.md", {
		language = self.t("language"),
		code = if #self.code > 0 then code.shown(self) else false,
	})
	local note = template.render("./prompts/note.md", {
		opening = notes.opening or false,
		concept = response ~= nil and words.asks_for_concept(response),
		asked = notes.asked or false,
		lifeline = notes.lifeline or false,
		missing = if notes.missing and #notes.missing > 0 then table.concat(notes.missing, ", ") else false,
		verified = notes.verified or false,
		quote = quote or false,
	})
	local messages = history.messages(self)
	history.shorten(self, history.size(system .. note .. voice.body, messages) + LONGEST)
	messages = history.messages(self)
	local last = text.trim(trace.reduce(response or "") .. "\n\n" .. text.trim(note))
	if response == nil then
		messages[1].content = text.trim(messages[1].content .. "\n\n" .. last)
	else
		table.insert(messages, { role = "user", content = last })
	end
	local model = ""
	for try = 0, AGAIN do
		local reply = llm.chat({
			persona = voice,
			vars = { lang = self.lang },
			system = system,
			messages = messages,
			max_tokens = LONGEST,
		})
		model = reply.model
		local said = text.trim(reply.text)
		local reason = fault(self, said, quote)
		if reason == nil then
			local carried = if quote and quoting.carried(said, quote) then quote else nil
			if carried ~= nil then
				table.insert(self.given, carried.text)
			end
			return { text = said, model = model, quote = carried }
		end
		if try < AGAIN then
			messages = table.clone(messages)
			table.insert(messages, { role = "assistant", content = if said == "" then "…" else said })
			table.insert(messages, {
				role = "user",
				content = template.render("./prompts/again.md", { reason = reason, language = self.t("language") }),
			})
		end
	end
	return { text = fallback(self), model = model, quote = nil }
end

return question
