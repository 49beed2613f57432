--!strict
--- What every module needs while a session runs: the session, who debates, what was used, and the one way in which a model is
--- asked. What a large mind reads is in `conversation.lua`; what a small one gets instead is in `small.lua`.

local ask = require("../common/ask")
local clock = require("@nietz/clock")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local llm = require("@nietz/llm")
local look = require("../common/look")
local mind = require("../common/mind")
local model_text = require("../common/model_text")
local nietz = require("@nietz")
local options = require("./options")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local session = require("./session")
local spread = require("./spread")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local app = {}

--- A point that somebody made in the debate; others refer to it by its id.
export type Point = { id: string, by: string, text: string, turnId: string, cycle: number }
--- A file of the user's, its lines numbered.
export type File = { path: string, text: string, first: number, last: number, lines: number, sha256: string }
export type Spent = spread.Spent
--- Which model made a turn, how long that took, and where it looked before.
export type Made = session.Made
--- What somebody says, before it is a turn.
export type Saying = {
	sender: session.Participant,
	recipient: session.Participant?,
	messageType: string,
	content: string,
	number: number,
	timestamp: string?,
	metadata: session.Values?,
}
--- The variables of a prompt.
export type Values = session.Values
export type Translate = translations.Translate

export type App = {
	doc: session.Session,
	params: nietz.Values,
	limit: options.Limit,
	lang: string,
	t: translations.Translate,
	moderator: personas.Persona,
	--- Those who debate, and which model each of them is asked by, where `--models` says so.
	seats: { personas.Persona },
	models: { [string]: string },
	points: { Point },
	--- What the user said, piece by piece; `turn` is the number of turns before it.
	book: ledger.Ledger,
	files: { File },
	--- Whether members may look into the project, the lines that they were shown, and those that were cited and told.
	looking: boolean,
	shown: { look.Line },
	cited: { look.Line },
	--- The conversation as a large mind reads it: texts that are only ever added to.
	conversation: { string },
	spent: { [string]: Spent },
	--- Up to which entry of the book it was asked what holds no longer.
	looked_until: number,
	--- Whether this is a member in a run of its own, whose council tells where it looked.
	apart: boolean?,
}

--- The code of the failure that ends a session when the user cancels it.
app.CANCELLED = "cancelled"

--- What stands between the conversation and what a model is asked about it: an answer, so that services keep what is before it.
local READ = "I have read all of it."

--- Records an event: something that happened without anybody saying it.
function app.record_event(self: App, kind: string, fields: session.Values?)
	local event: session.Values = table.clone(fields or {})
	event.kind, event.at = kind, event.at or clock.now()
	session.add_event(self.doc, event :: session.Event)
end

--- Records what somebody says, and returns the turn.
function app.record_turn(self: App, said: Saying): session.Turn
	local new = table.clone(said) :: any
	new.turnId, new.timestamp = random.uuid(), said.timestamp or clock.now()
	return session.add_turn(self.doc, new)
end

--- Returns the day on which the session began, as everybody is told it: the same for good, so that nothing that was sent changes.
function app.today(self: App): string
	return string.sub(self.doc.createdAt, 1, 10)
end

--- Adds to the conversation what all large minds read from now on.
function app.tell(self: App, block: string)
	local plain = text.trim((string.gsub(block, "\n\n\n+", "\n\n")))
	if plain ~= "" then
		table.insert(self.conversation, plain)
	end
end

--- Notes what the user said, sentence by sentence, and returns it as lines with their numbers. `head` stands before the first.
function app.hear(self: App, kind: string, words: string, head: string?): { string }
	local lines: { string } = {}
	for index, sentence in ledger.sentences(words) do
		local whole = if index == 1 and head ~= nil then `{head} {sentence}` else sentence
		local entry = ledger.add(self.book, { kind = kind, text = whole, by = "user", turn = #self.doc.messageTurns })
		if entry ~= nil then
			app.record_event(self, "noted", { entry = entry })
			table.insert(lines, `U{entry.id}: {entry.text}`)
		end
	end
	return lines
end

--- Takes back something that the user said. `quote` are the later words that do; without any the user struck it by its number.
function app.take_back(self: App, id: number, quote: string?): boolean
	local entry = ledger.revoke(self.book, id, { by = "user", turn = #self.doc.messageTurns, quote = quote })
	if entry ~= nil then
		app.record_event(self, "noted", { entry = entry })
	end
	return entry ~= nil
end

--- Returns the participant of a persona's name.
function app.participant_of(self: App, name: string): session.Participant
	return session.participant(self.doc, name) :: session.Participant
end

--- Returns a new participant for a persona; `relevant` where it was selected for the request.
function app.new_participant(persona: personas.Persona, relevant: boolean, guest: boolean?): session.Participant
	local role = if guest then "guest" else "debater"
	for _, tag in { "moderator", "contrarian" } do
		role = if table.find(persona.tags, tag) ~= nil then tag else role
	end
	return {
		participantId = random.uuid(),
		type = "persona",
		name = persona.name,
		role = role,
		isPrimaryUser = false,
		isRelevantForRequest = relevant,
	}
end

export type ModelRequest = {
	--- The prompt's name: `select` is `prompts/select.md`, and for a small mind `prompts/small/select.md`.
	prompt: string,
	vars: Values,
	schema: llm.Schema,
	check: ((value: Values) -> string?)?,
	--- Who is asked; without one, the model as such, which reads nothing but the prompt.
	persona: personas.Persona?,
	label: string,
	--- What its tokens are counted for.
	purpose: string,
	temperature: number?,
	model: string?,
	--- Whether it is a small mind that is asked, which gets its own prompt.
	small: boolean,
	--- Whether the persona may look into the project before it answers, where anybody may.
	looks: boolean?,
	--- What a member is asked by this, which it can say in a run of its own.
	turn: spread.Turn?,
}

--- Returns the model that speaks as a persona; nil for the run's.
function app.model_of(self: App, persona: personas.Persona?): string?
	return if persona then self.models[persona.slug] or persona.model else nil
end

--- Whether a persona, or a model, gets the crutches of a small mind.
function app.is_small(self: App, persona: personas.Persona?, model: string?): boolean
	return mind.of(model or app.model_of(self, persona)) == "small"
end

--- Ends each text of a value at a whole word or sentence, where the limit of its schema may have cut it.
local function end_texts_whole(value: Values, schema: any): any
	if type(value) == "string" then
		return if schema.maxLength then model_text.to_whole_line(value, schema.maxLength) else value
	elseif type(value) ~= "table" then
		return value
	end
	for key, part in value do
		local inner = schema.items or (schema.properties and schema.properties[key])
		if inner ~= nil then
			value[key] = end_texts_whole(part, inner)
		end
	end
	return value
end

local function add_spent(self: App, purpose: string, more: Spent)
	local spent: Spent = self.spent[purpose] or { calls = 0, input = 0, output = 0, cached = 0, cost = 0, priced = true }
	spent.calls += more.calls
	spent.input += more.input
	spent.output += more.output
	spent.cached += more.cached
	spent.priced = spent.priced and more.priced
	spent.cost = if spent.priced then (spent.cost or 0) + (more.cost or 0) else nil
	self.spent[purpose] = spent
end

local function count_tokens(self: App, purpose: string, reply: llm.Reply)
	local usage = reply.usage
	add_spent(self, purpose, {
		calls = 1,
		input = usage.input,
		output = usage.output,
		cached = usage.cached,
		cost = reply.cost,
		priced = reply.cost ~= nil,
	})
end

--- How much all large minds must read for services to keep it, in tokens.
local LEAST_KEPT = 1024

--- Whether all seats read so much of the same that it pays to let one of them speak first: the others find it kept.
function app.shares_enough(self: App): boolean
	local letters = #template.render("./prompts/system.md", {})
	for _, block in self.conversation do
		letters += #block
	end
	local mixed = next(self.models) ~= nil
	for _, seat in self.seats do
		mixed = mixed or seat.model ~= nil or app.is_small(self, seat)
	end
	return not mixed and letters >= 4 * LEAST_KEPT
end

--- Returns how many tokens were used for a purpose.
function app.tokens(self: App, purpose: string): number
	local spent = self.spent[purpose]
	return if spent then spent.input + spent.output else 0
end

--- Returns the variables of a prompt with the name and the words of whoever speaks: a large mind is told them last.
local function introduced(self: App, request: ModelRequest): Values
	local vars = table.clone(request.vars)
	local persona = request.persona
	if persona ~= nil then
		vars.name = persona.name
		vars.persona = text.trim(personas.render(persona, { lang = self.lang }))
	end
	return vars
end

--- Returns what is sent: to a small mind one prompt, by a persona; to a large one the whole conversation, the same for all, and
--- then who speaks and what is wanted, so that a service that keeps what it was sent keeps nearly all.
local function chat_of(self: App, request: ModelRequest, looker: look.Looker?): llm.Chat
	local persona = request.persona
	local chat: llm.Chat = {
		schema = request.schema,
		check = request.check,
		label = request.label,
		temperature = request.temperature,
		model = request.model or app.model_of(self, persona),
	}
	if persona == nil then
		chat.prompt = template.render(`./prompts/{if request.small then "small/" else ""}{request.prompt}.md`, request.vars)
	elseif request.small then
		chat.persona, chat.vars = persona, { lang = self.lang }
		chat.prompt = template.render(`./prompts/small/{request.prompt}.md`, request.vars)
	else
		local messages: { llm.Message } = {}
		for _, block in self.conversation do
			table.insert(messages, { role = "user", content = block })
		end
		table.insert(messages, { role = "assistant", content = READ })
		chat.system = text.trim(template.render("./prompts/system.md", {}))
		chat.messages, chat.effort = messages, persona.effort :: any
		chat.prompt =
			text.trim((string.gsub(template.render(`./prompts/{request.prompt}.md`, introduced(self, request)), "\n\n\n+", "\n\n")))
		if looker ~= nil then
			look.equip(chat, looker)
		end
	end
	return chat
end

--- Shows where somebody has looked, and keeps the lines that they were shown.
local function keep_looks(self: App, label: string, looks: { look.Look }, lines: { look.Line })
	table.move(lines, 1, #lines, #self.shown + 1, self.shown)
	local what = look.told(looks)
	if what ~= nil and not self.apart then
		ui.say(self.t("looked", { who = label, what = what }))
	end
end

--- Has a member asked in a run of its own.
local function ask_apart(self: App, request: ModelRequest, persona: personas.Persona, turn: spread.Turn): (Values, Made)
	-- The case is the same in a fork, which is another run.
	local doc = table.clone(self.doc)
	doc.metadata = table.clone(self.doc.metadata)
	doc.metadata.correlationId = nil
	local said = spread.ask(persona.slug, self.models[persona.slug], {
		turn = turn,
		doc = doc,
		limit = self.limit,
		seats = list.map(self.seats, function(seat): string
			return seat.slug
		end),
		models = self.models,
		points = self.points,
		book = self.book,
		files = self.files,
		looking = self.looking,
		conversation = self.conversation,
	})
	for purpose, spent in said.spent do
		add_spent(self, purpose, spent)
	end
	keep_looks(self, request.label, said.made.looked or {}, said.shown)
	return said.value, said.made
end

--- Asks a model for a structured value. Every failure is raised.
function app.ask_model_or_raise(self: App, request: ModelRequest): (Values, Made)
	local began = clock.unix()
	local persona, turn = request.persona, request.turn
	if self.params.spread and persona ~= nil and turn ~= nil then
		return ask_apart(self, request, persona, turn)
	end
	local looker = if persona
			and self.looking
			and request.looks
			and not request.small
		then look.by(persona, request.label, app.model_of(self, persona))
		else nil
	local reply = llm.chat(chat_of(self, request, looker))
	count_tokens(self, request.purpose, reply)
	local made: Made = { model = reply.model, latencySeconds = math.round((clock.unix() - began) * 1000) / 1000 }
	if looker ~= nil then
		keep_looks(self, request.label, looker.looks, looker.lines)
		made.looked = if #looker.looks > 0 then json.array(table.clone(looker.looks)) else nil
	end
	if reply.value == nil then
		error({ code = "reply-invalid", message = self.t("looked_only", { who = request.label }) }, 0)
	end
	return end_texts_whole(reply.value, request.schema), made
end

--- Asks a model for a structured value. Where it cannot write a valid one, says so, records that, and returns nil.
function app.ask_model(self: App, request: ModelRequest): (Values?, Made?)
	local value, made = ask.try(function(): (Values, Made)
		return app.ask_model_or_raise(self, request)
	end)
	if made == nil then
		ui.say(self.t("model.unusable", { who = request.label }))
		app.record_event(self, "failure", { code = "reply-invalid", who = request.label })
	end
	return value, made
end

--- Returns a model's text as one line, without the list marks that models put before it.
function app.to_line(value: string): string
	local plain = text.trim((string.gsub(value, "%s+", " ")))
	return (string.gsub(plain, "^[%-%*•]%s+", ""))
end

--- Returns the options that can be stood for: all but those that nobody stands for since they became part of another.
function app.open_options(self: App): { session.Option }
	local found: { session.Option } = {}
	for _, option in self.doc.metadata.options or {} :: { session.Option } do
		if not option.gone then
			table.insert(found, option)
		end
	end
	return found
end

--- Returns the name of an option, by which it is told once it was told whole; its text where it has none.
function app.option_name(self: App, id: string): string
	for _, option in self.doc.metadata.options or {} :: { session.Option } do
		if option.id == id then
			return session.name_of(option)
		end
	end
	return self.t("undecided")
end

--- Returns the option that one lives on in since it was merged; itself where it was not.
function app.standing_option(self: App, id: string): string
	for _, option in self.doc.metadata.options or {} :: { session.Option } do
		if option.id == id and option.into ~= nil then
			return app.standing_option(self, option.into)
		end
	end
	return id
end

--- Returns the text of an option.
function app.option_text(self: App, id: string): string
	for _, option in self.doc.metadata.options or {} :: { session.Option } do
		if option.id == id then
			return option.text
		end
	end
	return self.t("undecided")
end

return app
