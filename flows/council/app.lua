--!strict
--- What every room needs while a session runs: the session, who sits where, what was spent, and the one way in which
--- a model is asked.

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

--- Something that somebody said in the debate; others refer to it by its id.
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
	--- What the user said to all since the last cycle.
	remarks: { string },
	--- Tokens by purpose: `clarify`, `council`, `control`, `judge`.
	spent: { [string]: number },
}

--- What ends a session from within, when the user says so.
app.CANCELLED = "cancelled"

--- Records that something happened which nobody says.
function app.happen(self: App, kind: string, fields: { [string]: any }?)
	local event: any = table.clone(fields or {})
	event.kind, event.at = kind, event.at or clock.now()
	session.record(self.doc, event)
end

--- Records what somebody says, and returns the turn.
function app.record(self: App, said: any): any
	said.turnId = random.uuid()
	said.timestamp = said.timestamp or clock.now()
	return session.say(self.doc, said)
end

--- Returns the participant that a persona is.
function app.seat(self: App, name: string): session.Participant
	return session.participant(self.doc, name) :: session.Participant
end

--- Returns a new participant for a persona.
function app.participant(persona: personas.Persona): session.Participant
	local role = "debater"
	for _, tag in { "moderator", "contrarian" } do
		role = if table.find(persona.tags, tag) ~= nil then tag else role
	end
	return { participantId = random.uuid(), type = "persona", name = persona.name, role = role }
end

export type Thought = {
	--- The prompt's name: `select` is `prompts/select.md`.
	prompt: string,
	vars: { [string]: any },
	schema: { [string]: any },
	check: ((value: any) -> string?)?,
	--- Who thinks; nobody in particular without one.
	persona: personas.Persona?,
	label: string,
	--- What it is spent on.
	arm: string,
	temperature: number?,
	model: string?,
}

--- Lets each text of a value end whole that the limit of its schema may have cut.
local function whole(value: any, schema: any): any
	if type(value) == "string" then
		return if schema.maxLength then model_text.to_whole_line(value, schema.maxLength) else value
	elseif type(value) ~= "table" then
		return value
	end
	for key, part in value do
		local inner = schema.items or (schema.properties and schema.properties[key])
		if inner ~= nil then
			value[key] = whole(part, inner)
		end
	end
	return value
end

--- Asks a model for one structured thought. Every failure is raised.
function app.ask(self: App, thought: Thought): (any, llm.Reply)
	local reply = llm.chat({
		persona = thought.persona,
		vars = if thought.persona then { lang = self.lang } else nil,
		prompt = template.render(`./prompts/{thought.prompt}.md`, thought.vars),
		schema = thought.schema,
		check = thought.check,
		label = thought.label,
		temperature = thought.temperature,
		model = thought.model,
	})
	self.spent[thought.arm] = (self.spent[thought.arm] or 0) + reply.usage.input + reply.usage.output
	return whole(reply.value, thought.schema), reply
end

--- Like `ask`, and where the model cannot produce a valid thought: says so, keeps that in the record, and returns nil.
function app.think(self: App, thought: Thought): (any, llm.Reply?)
	local value, reply = ask.try(function(): (any, llm.Reply)
		return app.ask(self, thought)
	end)
	if reply == nil then
		ui.say(`({thought.label}: the model's reply could not be used.)`)
		app.happen(self, "failure", { code = "reply-invalid", who = thought.label })
	end
	return value, reply
end

--- Returns what every prompt about the session may use.
function app.context(self: App): { [string]: any }
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

--- Returns a model's text on one line, without the list marks and ids that models like to put before it.
function app.line(value: string): string
	local plain = text.trim((string.gsub(value, "%s+", " ")))
	return (string.gsub(plain, "^[%-%*•]%s+", ""))
end

--- Returns the text of an option.
function app.option(self: App, id: string): string
	for _, option in self.doc.metadata.options or {} do
		if option.id == id then
			return option.text
		end
	end
	return "undecided"
end

return app
