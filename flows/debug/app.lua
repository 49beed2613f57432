--!strict
--- What every room needs while a session runs: the document and how it is saved, the language, the voice, the code that
--- was read, and the one way in which a model is asked for something structured.

local ask = require("../common/ask")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local lang = require("./lang")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local session = require("./session")
local template = require("@nietz/template")
local translations = require("../common/translations")

local app = {}

export type CodeFile = { path: string, text: string, lines: { string }, focus: { number }, shown: string, note: string? }

export type App = {
	doc: session.Doc,
	t: translations.Translate,
	lang: string,
	params: nietz.Values,
	--- The slug of the persona that asks now.
	intensity: string,
	code: { CodeFile },
	--- Names of files that were asked for already, found or not.
	looked_for: { [string]: boolean },
	--- The turns up to this one are in the summary.
	summary: string?,
	summarised: number,
	--- Texts of quotes and fallback questions that were given.
	given: { string },
	--- How many tokens the model takes in one call.
	window: number,
	verified: number,
}

local sessions = documents.collection("sessions")

--- Where nobody knows what a model takes.
local UNKNOWN_WINDOW = 32768

--- Returns the state of a new session.
function app.new(doc: session.Doc, code: string, params: nietz.Values): App
	return {
		doc = doc,
		t = lang.of(code),
		lang = code,
		params = params,
		intensity = doc.intensity,
		code = {},
		looked_for = {},
		summary = nil,
		summarised = 0,
		given = {},
		window = params.context or llm.window() or UNKNOWN_WINDOW,
		verified = 0,
	}
end

--- Returns the voice that asks now.
function app.voice(self: App): personas.Persona
	return personas.get(self.intensity)
end

--- Saves the session and returns its path below the workspace.
function app.save(self: App): string
	self.doc.endTimestamp = clock.now()
	self.doc.skillScores = if self.doc.scoredBy == "tags" then session.scores_of(self.doc) else self.doc.skillScores
	return sessions:save(self.doc)
end

export type Thought = {
	prompt: string,
	vars: nietz.Values,
	schema: llm.Schema,
	label: string,
	model: string?,
	max_tokens: number?,
}

--- Asks a model for something structured, without a voice. Returns nil where it cannot produce anything valid; other
--- failures (no connection, no key) are raised.
function app.think(thought: Thought): any
	return (
		ask.value({
			model = thought.model,
			prompt = template.render(`./prompts/{thought.prompt}.md`, thought.vars),
			schema = thought.schema,
			label = thought.label,
			max_tokens = thought.max_tokens,
			temperature = 0,
		})
	)
end

return app
