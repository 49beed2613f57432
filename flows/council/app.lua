--!strict
--- What every module needs while a session runs: the session, who debates, the tokens used, and the one way in which a model is
--- asked.

local ask = require("../common/ask")
local clock = require("@nietz/clock")
local llm = require("@nietz/llm")
local model_text = require("../common/model_text")
local options = require("./options")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local app = {}

--- A point that somebody made in the debate; others refer to it by its id.
export type Point = { id: string, by: string, text: string, turnId: string, cycle: number }

export type App = {
	doc: session.Session,
	params: { [string]: any },
	limit: options.Limit,
	lang: string,
	moderator: personas.Persona,
	--- Those who debate.
	seats: { personas.Persona },
	points: { Point },
	--- What the user said to everybody since the last cycle.
	remarks: { string },
	--- Tokens by purpose: `clarify`, `council`, `control`, `judge`.
	tokens: { [string]: number },
}

--- The code of the failure that ends a session when the user cancels it.
app.CANCELLED = "cancelled"

--- Records an event: something that happened without anybody saying it.
function app.record_event(self: App, kind: string, fields: { [string]: any }?)
	local event: any = table.clone(fields or {})
	event.kind, event.at = kind, event.at or clock.now()
	session.add_event(self.doc, event)
end

--- Records what somebody says, and returns the turn.
function app.record_turn(self: App, said: any): any
	said.turnId = random.uuid()
	said.timestamp = said.timestamp or clock.now()
	return session.add_turn(self.doc, said)
end

--- Returns the participant of a persona's name.
function app.participant_of(self: App, name: string): session.Participant
	return session.participant(self.doc, name) :: session.Participant
end

--- Returns a new participant for a persona.
function app.new_participant(persona: personas.Persona): session.Participant
	local role = "debater"
	for _, tag in { "moderator", "contrarian" } do
		role = if table.find(persona.tags, tag) ~= nil then tag else role
	end
	return { participantId = random.uuid(), type = "persona", name = persona.name, role = role }
end

export type ModelRequest = {
	--- The prompt's name: `select` is `prompts/select.md`.
	prompt: string,
	vars: { [string]: any },
	schema: { [string]: any },
	check: ((value: any) -> string?)?,
	--- Who is asked; without one, the model as such.
	persona: personas.Persona?,
	label: string,
	--- What its tokens are counted for.
	purpose: string,
	temperature: number?,
	model: string?,
}

--- Ends each text of a value at a whole word or sentence, where the limit of its schema may have cut it.
local function end_texts_whole(value: any, schema: any): any
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

--- Asks a model for a structured value. Every failure is raised.
function app.ask_model_or_raise(self: App, request: ModelRequest): (any, llm.Reply)
	local reply = llm.chat({
		persona = request.persona,
		vars = if request.persona then { lang = self.lang } else nil,
		prompt = template.render(`./prompts/{request.prompt}.md`, request.vars),
		schema = request.schema,
		check = request.check,
		label = request.label,
		temperature = request.temperature,
		model = request.model,
	})
	self.tokens[request.purpose] = (self.tokens[request.purpose] or 0) + reply.usage.input + reply.usage.output
	return end_texts_whole(reply.value, request.schema), reply
end

--- Asks a model for a structured value. Where it cannot write a valid one, says so, records that, and returns nil.
function app.ask_model(self: App, request: ModelRequest): (any, llm.Reply?)
	local value, reply = ask.try(function(): (any, llm.Reply)
		return app.ask_model_or_raise(self, request)
	end)
	if reply == nil then
		ui.say(`({request.label}: the model's reply could not be used.)`)
		app.record_event(self, "failure", { code = "reply-invalid", who = request.label })
	end
	return value, reply
end

--- Returns the variables of every prompt about the session.
function app.prompt_vars(self: App): { [string]: any }
	local settled: { any } = {}
	for _, question in self.doc.clarificationQuestions do
		if question.status == "answered" then
			table.insert(settled, { question = question.question, answer = question.userAnswer.answer })
		end
	end
	local assumed: { string } = {}
	for _, assumption in self.doc.assumptionLog do
		table.insert(assumed, assumption.assumption)
	end
	local case = template.render("./prompts/case.md", {
		request = self.doc.requestText,
		facts = self.params.context or "",
		settled = settled,
		assumed = assumed,
	})
	return {
		case = case,
		topic = self.doc.metadata.topic or self.doc.requestText,
		options = self.doc.metadata.options or {},
	}
end

--- Returns a model's text as one line, without the list marks that models put before it.
function app.to_line(value: string): string
	local plain = text.trim((string.gsub(value, "%s+", " ")))
	return (string.gsub(plain, "^[%-%*•]%s+", ""))
end

--- Returns the text of an option.
function app.option_text(self: App, id: string): string
	for _, option in self.doc.metadata.options or {} do
		if option.id == id then
			return option.text
		end
	end
	return "undecided"
end

return app
