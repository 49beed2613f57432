--!strict
--- What every room needs while a session runs: the document and how it is saved, the language, the switches, and
--- the one way in which a model is asked.

local ask = require("../common/ask")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local lang = require("./lang")
local llm = require("@nietz/llm")
local model_text = require("../common/model_text")
local personas = require("@nietz/personas")
local session = require("./session")
local shape = require("../common/shape")
local template = require("@nietz/template")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local app = {}

--- What a command asks the session to do; nil when it is done with.
export type Signal = {
	--- `next` ends this iteration, `again` asks other questions in it, `jump` starts over where the session now stands.
	go: "next" | "again" | "jump" | "finish" | "quit" | "abandon",
}

export type App = {
	doc: session.Doc,
	t: lang.Say,
	lang: string,
	--- The manifest's params, and what they imply (`switches.lua`).
	switches: any,
	--- When this sitting was last touched.
	since: string,
	--- Carries out a command; set by the entry, so that asking need not know what there is to do.
	act: (self: App, name: string, argument: string) -> Signal?,
	--- What the next questions shall be about, set by `dive`, `pivot`, a technique, a party, a panel.
	focus: string?,
	techniques: { any },
	--- Where what people do today fails, for one of the next questions.
	weak_point: string?,
	speaker: string?,
	--- Where the session is saved: its own collection, unless that failed and the user chose another place.
	home: any,
}

local sessions = documents.collection("sessions")
--- At the top of the workspace, for when the folder of sessions cannot be written.
local rescued = documents.collection("rescued")

--- Returns the command by which a person resumes this session.
function app.resume_command(self: App): string
	return `nietz run brainstorm --continue {self.doc.session.slug}`
end

local function aside(self: App): string
	local s = self.doc.session
	local number = 2
	local base = string.sub(s.slug, 1, 90)
	while sessions:load(`{base}-{number}`) ~= nil do
		number += 1
	end
	s.slug = `{base}-{number}`
	s.id = `{s.slug}-{string.sub(s.created, 1, 10)}`
	return sessions:save(self.doc)
end

local function choose(self: App, id: string, values: { string }, default: string): string
	local options: { ui.Option } = {}
	for _, value in values do
		table.insert(options, { value = value, label = self.t(`save.{value}`) })
	end
	return ui.choose({ id = id, prompt = self.t("save.ask"), options = options, default = default })
end

--- Shows the session as it would be saved, and ends the run with what went wrong.
local function show(self: App, err: any): never
	ui.say("```yaml\n" .. yaml.encode(self.doc) .. "```")
	return error(err, 0)
end

--- What to do when somebody else changed the file: neither theirs nor ours is lost.
local function changed(self: App, err: any): string
	local path = sessions:path(self.doc.session.slug)
	ui.say(self.t("save.changed", { path = path }))
	local choice = choose(self, "conflict", { "overwrite", "aside", "stop" }, "aside")
	if choice == "overwrite" then
		return sessions:save(self.doc, { overwrite = true })
	elseif choice == "stop" then
		return error(err, 0)
	end
	path = aside(self)
	ui.say(self.t("save.aside_done", { slug = self.doc.session.slug }))
	return path
end

--- What to do when the place refuses: the session in memory goes elsewhere, or at least onto the screen.
local function refused(self: App, err: any): string
	ui.say(self.t("save.failed", { message = err.message }))
	local choice = choose(self, "save-failed", { "retry", "elsewhere", "show" }, "elsewhere")
	if choice == "retry" then
		return app.save(self)
	elseif choice == "show" then
		return show(self, err)
	end
	local ok, path = pcall(rescued.save, rescued, self.doc, { overwrite = true })
	if not ok then
		ui.say(self.t("save.failed", { message = (path :: any).message }))
		return show(self, err)
	end
	self.home = rescued
	ui.say(self.t("save.elsewhere_done", { path = path, home = sessions:path(self.doc.session.slug) }))
	return path
end

--- Saves the session and returns its path below the workspace.
function app.save(self: App): string
	local now = clock.now()
	session.touch(self.doc, now, self.since)
	self.since = now
	local ok, result = pcall(self.home.save, self.home, self.doc)
	if ok then
		return result
	end
	local code = if type(result) == "table" then result.code else nil
	if code == "document-changed" then
		return changed(self, result)
	elseif code == "disk-failed" or code == "path-refused" or code == "document-busy" then
		return refused(self, result)
	elseif code == "document-invalid" or code == "document-version" then
		return show(self, result)
	end
	return error(result, 0)
end

--- Says that the session is saved, and how to come back to it.
function app.show_saved(self: App, path: string)
	local s = self.doc.session
	ui.say(table.concat({
		self.t("save.done", { path = path }),
		self.t("save.details", { ems = s.ems, phase = self.t(`phases.{s.phase}`), iteration = s.iteration }),
		self.t("save.resume", { command = `\`{app.resume_command(self)}\`` }),
	}, "  \n"))
end

--- Returns the persona that leads.
function app.leader(self: App): personas.Persona
	return personas.get(self.doc.session.persona)
end

export type Thought = {
	--- The prompt's name: `score` is `prompts/score.md`.
	prompt: string,
	vars: { [string]: any },
	schema: { [string]: any },
	check: ((value: any) -> string?)?,
	persona: personas.Persona?,
	temperature: number?,
	--- How often it may be asked for again, by default as often as the host does.
	repairs: number?,
	--- Without a voice: for weighing and writing down.
	plain: boolean?,
}

--- Returns the schema with room for steps of thought, which come first: names are written in their order.
local function stepwise(schema: { [string]: any }): { [string]: any }
	local wider = table.clone(schema)
	wider.properties = table.clone(schema.properties)
	wider.properties._steps = shape.list(shape.text(5, 200), 1, 4)
	wider.required = table.clone(schema.required)
	table.insert(wider.required, 1, "_steps")
	return wider
end

--- Asks a model for one structured thought, in the voice of the leader unless another is given.
---
--- Returns nil, after saying so, where the model cannot produce a valid one: each caller goes on without it. Other
--- failures (no connection, no key) are raised, for nothing that follows would work either.
function app.think(self: App, thought: Thought): any
	local vars = table.clone(thought.vars)
	vars.language = self.t("language")
	local prompt, schema = template.render(`./prompts/{thought.prompt}.md`, vars), thought.schema
	if self.switches.steps then
		prompt, schema = prompt .. "\n\n" .. template.render("./prompts/stepwise.md"), stepwise(schema)
	end
	local request: llm.Chat = {
		persona = if thought.plain then nil else thought.persona or app.leader(self),
		vars = if thought.plain then nil else { lang = self.lang },
		system = if thought.plain then template.render("./prompts/plain.md") else nil,
		prompt = prompt,
		schema = schema,
		check = thought.check,
		temperature = thought.temperature,
		repairs = thought.repairs,
		label = if thought.persona then thought.persona.name else self.t(`thinking.{thought.prompt}`),
	}
	local value, reply = ask.value(request)
	if reply == nil then
		ui.say(self.t("thinking.failed", { what = request.label :: string }))
	end
	return value
end

app.line, app.whole = model_text.to_line, model_text.to_whole_line

return app
