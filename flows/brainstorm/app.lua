--!strict
--- What every module needs while a session runs: the document and how it is saved, the language, the options, and the one
--- way in which a model is asked.

local about = require("../common/about")
local ask = require("../common/ask")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local failure = require("../common/failure")
local json = require("@nietz/json")
local lang = require("./lang")
local llm = require("@nietz/llm")
local look = require("../common/look")
local mind = require("../common/mind")
local model_text = require("../common/model_text")
local options = require("./options")
local personas = require("@nietz/personas")
local session = require("./session")
local shape = require("../common/shape")
local techniques = require("./techniques")
local template = require("@nietz/template")
local text = require("@nietz/text")
local transcript = require("./transcript")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local app = {}

--- Where a command leads the session; nil where it leads nowhere.
export type Signal = {
	--- `next` ends this iteration, `again` asks other questions in it, `jump` starts over where the session now stands.
	go: "next" | "again" | "jump" | "finish" | "quit" | "abandon",
}

export type App = {
	doc: session.Doc,
	t: lang.Say,
	lang: string,
	--- How much the run's model can hold.
	mind: mind.Size,
	--- What the project says, for large minds and small ones.
	reading: about.Reading,
	--- What the command line allows this session.
	options: options.Options,
	--- When the session was last saved in this sitting.
	last_saved: string,
	--- Carries out a command. Set by the entry: the dialogue takes commands and does not know what they do.
	run_command: (self: App, name: string, argument: string) -> Signal?,
	--- Asks the voice that a line names behind its `@`. Returns false where it names nobody, and the line is an answer. Set likewise.
	ask_voice: (self: App, line: string) -> boolean,
	--- What the next questions are to be about, set by `dive` and `pivot`.
	focus: string?,
	techniques: { techniques.Technique },
	--- A weak point of what people do today, for one of the next questions.
	weak_point: string?,
	--- The one who speaks alone in the next round of a party.
	next_speaker: string?,
	--- The collection that the session is saved in; another one where saving failed and the user chose so.
	saved_in: documents.Handle,
	--- The last draft of the brief, and of what state of the session it is.
	drafted: { stamp: string, value: any }?,
}

local sessions = documents.collection("sessions")
--- At the top of the workspace, for sessions whose folder cannot be written.
local rescued = documents.collection("rescued")

--- Returns the command by which a person resumes this session.
function app.resume_command(self: App): string
	return `nietz run brainstorm --continue {self.doc.session.slug}`
end

local function save_under_new_name(self: App): string
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

local function choose_save_action(self: App, id: string, values: { string }, default: string): string
	local options: { ui.Option } = {}
	for _, value in values do
		table.insert(options, { value = value, label = self.t(`save.{value}`) })
	end
	return ui.choose({ id = id, prompt = self.t("save.ask"), options = options, default = default })
end

--- Shows the session as it would have been saved, and ends the run with what went wrong.
local function show_unsaved_and_fail(self: App, err: unknown): never
	ui.say("```yaml\n" .. yaml.encode(self.doc) .. "```")
	return error(err, 0)
end

--- Asks what to do where somebody else changed the file, so that neither version is lost.
local function resolve_change(self: App, err: unknown): string
	local path = sessions:path(self.doc.session.slug)
	ui.say(self.t("save.changed", { path = path }))
	local choice = choose_save_action(self, "conflict", { "overwrite", "aside", "stop" }, "aside")
	if choice == "overwrite" then
		return sessions:save(self.doc, { overwrite = true })
	elseif choice == "stop" then
		return error(err, 0)
	end
	path = save_under_new_name(self)
	ui.say(self.t("save.aside_done", { slug = self.doc.session.slug }))
	return path
end

--- Asks what to do where the file cannot be written: the session goes elsewhere, or at least onto the screen.
local function resolve_refusal(self: App, err: unknown): string
	ui.say(self.t("save.failed", { message = failure.of(err).message }))
	local choice = choose_save_action(self, "save-failed", { "retry", "elsewhere", "show" }, "elsewhere")
	if choice == "retry" then
		return app.save(self)
	elseif choice == "show" then
		return show_unsaved_and_fail(self, err)
	end
	local ok, path = pcall(rescued.save, rescued, self.doc, { overwrite = true })
	if not ok then
		ui.say(self.t("save.failed", { message = failure.of(path).message }))
		return show_unsaved_and_fail(self, err)
	end
	self.saved_in = rescued
	ui.say(self.t("save.elsewhere_done", { path = path, home = sessions:path(self.doc.session.slug) }))
	return path
end

--- Saves the session and returns its path below the workspace.
function app.save(self: App): string
	local now = clock.now()
	session.add_time(self.doc, now, self.last_saved)
	self.last_saved = now
	local ok, result = pcall(self.saved_in.save, self.saved_in, self.doc)
	if ok then
		return result
	end
	local code = failure.of(result).code
	if code == "document-changed" then
		return resolve_change(self, result)
	elseif code == "disk-failed" or code == "path-refused" or code == "document-busy" then
		return resolve_refusal(self, result)
	elseif code == "document-invalid" or code == "document-version" then
		return show_unsaved_and_fail(self, result)
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

--- What a prompt's template shows, by name.
export type Vars = { [string]: unknown }

export type ModelRequest = {
	--- The prompt's name: `score` is `prompts/score.md`.
	prompt: string,
	vars: Vars,
	schema: shape.Shape,
	check: ((value: any) -> string?)?,
	persona: personas.Persona?,
	temperature: number?,
	--- How often it may be asked for again, by default as often as the host does.
	repairs: number?,
	--- Without a persona: for weighing and writing down.
	plain: boolean?,
	--- Who a large mind is then: `minutes`, unless it is `author` or `examiner`.
	role: string?,
	--- Whether the prompt is all that a large mind reads.
	alone: boolean?,
	--- What was asked before and answered, where this goes on from there.
	after: Exchange?,
}

--- A request to a large mind, and its reply.
export type Exchange = { asked: string, answered: string }

--- Returns the schema with a list of steps of thought. It comes first, because a model writes members in their order.
local function with_steps(schema: shape.Shape): shape.Shape
	local wider = table.clone(schema)
	wider.properties = table.clone(schema.properties)
	wider.properties._steps = shape.list(shape.text(5, 200), 1, 4)
	wider.required = table.clone(schema.required)
	table.insert(wider.required, 1, "_steps")
	return wider
end

--- Whether the session is light in calls: what was said is taken down together with the next questions. A small mind does one
--- thing at a time.
function app.is_light(self: App): boolean
	return self.mind == "large" and self.options.light
end

--- Returns a request for a small mind: the persona is the system message, and the prompt says what it needs.
local function small_chat(self: App, request: ModelRequest, vars: Vars): llm.Chat
	return {
		persona = if request.plain then nil else request.persona or app.leader(self),
		vars = if request.plain then nil else { lang = self.lang },
		system = if request.plain then template.render("./prompts/plain.md") else nil,
		prompt = template.render(`./prompts/{request.prompt}.md`, vars),
		temperature = request.temperature,
	}
end

--- What a large mind is said to have answered to all that comes before its task.
local READ = "I have read all of it."

--- The language that stands where nobody chose one, and what a large mind then writes in.
local UNCHOSEN, THEIR_LANGUAGE = "en", "the language in which the user writes"
--- The same as personas are told it: they then name none.
local THEIRS = "theirs"

--- Whether what is written follows the language of the user, whatever the program around it speaks.
function app.follows_user(self: App): boolean
	return self.mind == "large" and self.lang == UNCHOSEN
end

--- Returns a request for a large mind: what all requests share comes first, then who speaks, then the task, so that a provider's
--- cache holds as much as can be.
local function large_chat(self: App, request: ModelRequest, vars: Vars): llm.Chat
	if request.alone then
		local prompt = template.render(`./prompts/large/{request.prompt}.md`, vars)
		return { prompt = (string.gsub(text.trim(prompt), "\n\n\n+", "\n\n")), temperature = request.temperature }
	end
	local who = if request.plain then nil else request.persona or app.leader(self)
	local messages: { llm.Message } = {}
	for _, piece in transcript.render(self.doc, self.options.template, self.reading) do
		table.insert(messages, { role = "user", content = piece })
	end
	table.insert(messages, { role = "assistant", content = READ })
	local after = request.after
	if after ~= nil then
		table.insert(messages, { role = "user", content = after.asked })
		table.insert(messages, { role = "assistant", content = after.answered })
	end
	local role = if who
		then personas.render(who, { lang = if app.follows_user(self) then THEIRS else self.lang })
		else template.render(`./prompts/large/roles/{request.role or "minutes"}.md`)
	local task = template.render(`./prompts/large/{request.prompt}.md`, vars)
	local prompt = `# Who you are now\n\n{text.trim(role)}\n\n# Your task\n\n{text.trim(task)}`
	return {
		system = text.trim(template.render("./prompts/large/system.md")),
		messages = messages,
		prompt = (string.gsub(prompt, "\n\n\n+", "\n\n")),
		model = if who then who.model else nil,
		effort = if who then who.effort :: any else nil,
		temperature = request.temperature or (if who then who.temperature else nil),
	}
end

--- Asks a model for a structured value, in the voice of the leader unless another persona is given.
---
--- Where the model cannot write a valid one, says so and returns nil: callers go on without it. Other failures (no
--- connection, no key) are raised, because whatever follows would fail, too. Returns as well what was asked and answered, for a
--- request that goes on from there.
function app.ask_model(self: App, request: ModelRequest): (any, Exchange?)
	local vars = table.clone(request.vars)
	vars.language = if app.follows_user(self) then THEIR_LANGUAGE else self.t("language")
	local chat = if self.mind == "small" then small_chat(self, request, vars) else large_chat(self, request, vars)
	chat.schema = request.schema
	if self.options.steps then
		chat.prompt = `{chat.prompt}\n\n{template.render("./prompts/stepwise.md")}`
		chat.schema = with_steps(request.schema)
	end
	chat.check, chat.repairs = request.check, request.repairs
	chat.label = if request.persona then request.persona.name else self.t(`thinking.{request.prompt}`)
	local about = self.doc.nietz.about
	local looker = if request.persona
			and about
			and self.mind == "large"
			and #self.reading.files > 0
		then look.by(request.persona, chat.label :: string, chat.model)
		else nil
	if looker ~= nil then
		look.equip(chat, looker)
	end
	local value, reply = ask.value(chat)
	local looked = if looker then look.told(looker.looks) else nil
	if looked ~= nil then
		ui.say(self.t("about.looked", { who = chat.label :: string, what = looked }))
	end
	if reply == nil then
		ui.say(self.t("thinking.failed", { what = chat.label :: string }))
	end
	return value, if value ~= nil then { asked = chat.prompt :: string, answered = json.encode(value) } else nil
end

app.to_line, app.to_whole_line = model_text.to_line, model_text.to_whole_line

return app
