--!strict
--- What every room needs while a session runs: the document and how it is saved, the language, the switches, and
--- the one way in which a model is asked.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local lang = require("./lang")
local llm = require("@nietz/llm")
local personas = require("@nietz/personas")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")
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
	--- Who takes part in the running party.
	voices: { string },
	speaker: string?,
}

local sessions = documents.collection("sessions")

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

--- What to do when the file is not ours any more, or the disk refuses: never lose the session silently.
local function rescue(self: App, err: any): string
	local t = self.t
	if err.code == "document-changed" then
		ui.say(t("save.changed", { path = sessions:path(self.doc.session.slug) }))
		local choice = ui.choose({
			id = "conflict",
			prompt = t("save.ask"),
			options = {
				{ value = "overwrite", label = t("save.overwrite") },
				{ value = "aside", label = t("save.aside") },
				{ value = "stop", label = t("save.stop") },
			},
			default = "aside",
		})
		if choice == "overwrite" then
			return sessions:save(self.doc, { overwrite = true })
		elseif choice == "aside" then
			local path = aside(self)
			ui.say(t("save.aside_done", { slug = self.doc.session.slug }))
			return path
		end
		return error(err, 0)
	end
	ui.say(t("save.failed", { message = err.message }))
	local choice = ui.choose({
		id = "save-failed",
		prompt = t("save.ask"),
		options = { { value = "retry", label = t("save.retry") }, { value = "show", label = t("save.show") } },
		default = "show",
	})
	if choice == "retry" then
		return app.save(self)
	end
	ui.say("```yaml\n" .. yaml.encode(self.doc) .. "```")
	return error(err, 0)
end

--- Saves the session and returns its path below the workspace.
function app.save(self: App): string
	local now = clock.now()
	session.touch(self.doc, now, self.since)
	self.since = now
	local ok, result = pcall(sessions.save, sessions, self.doc)
	if ok then
		return result
	end
	if type(result) == "table" and (result.code == "document-changed" or result.code == "disk-failed") then
		return rescue(self, result)
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

--- Returns the persona that leads; one that somebody deleted since is replaced by the default.
function app.leader(self: App): personas.Persona
	return personas.find(self.doc.session.persona) or personas.get("architecte")
end

export type Thought = {
	--- The prompt's name: `score` is `prompts/score.md`.
	prompt: string,
	vars: { [string]: any },
	schema: { [string]: any },
	check: ((value: any) -> string?)?,
	persona: personas.Persona?,
	temperature: number?,
	--- Without a voice: for weighing and writing down.
	plain: boolean?,
}

--- Asks a model for one structured thought, in the voice of the leader unless another is given.
---
--- Returns nil where the model cannot produce a valid one: each caller has a plain answer for that. Other
--- failures (no connection, no key) are raised, for nothing that follows would work either.
function app.think(self: App, thought: Thought): any
	local vars = table.clone(thought.vars)
	vars.language = self.t("language")
	local request: llm.Chat = {
		persona = if thought.plain then nil else thought.persona or app.leader(self),
		vars = if thought.plain then nil else { lang = self.lang },
		system = if thought.plain then template.render("./prompts/plain.md") else nil,
		prompt = template.render(`./prompts/{thought.prompt}.md`, vars),
		schema = thought.schema,
		check = thought.check,
		temperature = thought.temperature,
		label = if thought.persona then thought.persona.name else self.t(`thinking.{thought.prompt}`),
	}
	local ok, result = pcall(llm.chat, request)
	if ok then
		return (result :: llm.Reply).value
	elseif type(result) == "table" and (result :: any).code == "reply-invalid" then
		return nil
	end
	return error(result, 0)
end

--- Returns a model's text as one clean line. Where it is `limit` letters long or longer, the limit of its schema
--- may have cut it in the middle: it ends with its last whole sentence, or else with its last whole word and `…`.
function app.line(value: any, limit: number?): string
	if type(value) ~= "string" then
		return ""
	end
	local plain = text.trim((string.gsub(value, "%s+", " ")))
	local most = limit or 300
	if (utf8.len(plain) or #plain) < most or string.find(plain, "[%.%?!]$") ~= nil and utf8.len(plain) == most then
		return plain
	end
	local kept = text.truncate(plain .. " ", most)
	local sentence = string.match(kept, "^(.*[%.%?!]) ")
	if sentence ~= nil and #sentence * 2 > #kept then
		return sentence
	end
	return (string.match(kept, "^(.*%S) %S*$") or string.gsub(kept, "…$", "")) .. "…"
end

return app
