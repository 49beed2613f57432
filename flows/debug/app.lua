--!strict
--- What every module needs while a session runs: the document and how it is saved, the language, the voice, the code that was
--- read, and the one way in which a model is asked for a structured value.

local ask = require("../common/ask")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local excerpt = require("./excerpt")
local lang = require("./lang")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local session = require("./session")
local template = require("@nietz/template")
local translations = require("../common/translations")

local app = {}

--- How the session goes on: turns without progress, "I don't know"s, and steps that raise the ladder of hints since there was any;
--- and turns in a row with progress and without a plea for the answer.
export type Progress = { stalled: number, lost: number, raised: number, steady: number }

export type App = {
	doc: session.Doc,
	--- The run's id.
	run: string,
	t: translations.Translate,
	lang: string,
	params: nietz.Values,
	--- The slug of the persona that asks now, and of the one that asked first.
	voice: string,
	first_voice: string,
	progress: Progress,
	--- The files that the developer named, and the evidence, in the order in which they came.
	code_files: { excerpt.Shown },
	--- Images and PDFs that go with each question: what the run was given, and paths.
	pictures: { llm.Attached | string },
	--- The file names that were looked for already, found or not: nobody is asked for one twice.
	requested_paths: { [string]: boolean },
	--- A summary of the first turns, and how many turns it covers.
	summary: string?,
	summarised_turns: number,
	--- The texts of quotes and fallback questions that were used in this session.
	already_used: { string },
	--- The size of the model's context window, in tokens.
	context_tokens: number,
	--- Whether the developer was told that no verdict came on a reply.
	told_unread: boolean,
	--- How often a command of the developer's was run.
	commands_run: number,
	--- How many of `code_files` a question was asked about.
	seen_files: number,
	--- How many responses say something: a command alone says nothing that could be scored.
	answered: number,
	--- What was so before each of the last answers: what `/undo` goes back to.
	before: { nietz.Values },
	--- What the open question goes for: the kind of its target, and the ids of the beliefs.
	asked_about: { string },
	--- The questions beside the session's own that were put already, each of them once.
	asked_once: { [string]: boolean },
}

local sessions = documents.collection("sessions")

--- The size of the window where it is not known.
local UNKNOWN_WINDOW = 32768

--- Returns the state of a new session.
function app.new(doc: session.Doc, run: string, code: string, params: nietz.Values, voice: string): App
	return {
		doc = doc,
		run = run,
		t = lang.translator(code),
		lang = code,
		params = params,
		voice = voice,
		first_voice = voice,
		progress = { stalled = 0, lost = 0, raised = 0, steady = 0 },
		code_files = {},
		pictures = {},
		requested_paths = {},
		summary = nil,
		summarised_turns = 0,
		already_used = {},
		context_tokens = params.context or llm.window() or UNKNOWN_WINDOW,
		commands_run = 0,
		told_unread = false,
		seen_files = 0,
		answered = 0,
		before = {},
		asked_about = {},
		asked_once = {},
	}
end

--- Returns the voice that asks now.
function app.voice(self: App): personas.Persona
	return personas.get(self.voice)
end

--- Saves the session and returns its path below the workspace.
function app.save(self: App): string
	self.doc.endTimestamp = clock.now()
	self.doc.skillScores = if self.doc.nietz.scoredBy == "tags" then session.scores_of(self.doc) else self.doc.skillScores
	return sessions:save(self.doc)
end

export type ModelRequest = {
	prompt: string,
	vars: nietz.Values,
	schema: llm.Schema,
	label: string,
	--- What stays the same from call to call and stands before the prompt, so that providers keep it.
	system: string?,
	model: string?,
	max_tokens: number?,
}

--- Asks a model for a structured value, without a voice. Returns nil where it cannot write a valid one; other failures (no
--- connection, no key) are raised.
function app.ask_model(request: ModelRequest): any
	return (
		ask.value({
			model = request.model,
			system = request.system,
			prompt = template.render(`./prompts/{request.prompt}.md`, request.vars),
			schema = request.schema,
			label = request.label,
			max_tokens = request.max_tokens,
			temperature = 0,
		})
	)
end

return app
