--!strict
--- The end of a session: writes the brief and the journal, and closes the session.

local app = require("./app")
local brief_document = require("./brief_document")
local brief_draft = require("./brief_draft")
local brief_sections = require("./brief_sections")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local ems = require("./ems")
local farewell = require("./farewell")
local json = require("@nietz/json")
local journal = require("./journal")
local notebook = require("./notebook")
local noting = require("./noting")
local session = require("./session")
local statistics = require("./statistics")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local brief = {}

local briefs = documents.collection("briefs")
local journals = documents.collection("journals")

--- Returns the brief as Markdown, by the user's own template or in one of our forms. What rests on the user's words and has no
--- place there stands at its end.
function brief.render(self: app.App, made: brief_document.Brief): string
	local vars = brief_sections.of(self, made)
	local own = self.options.form_text
	local rendered =
		text.trim(if own ~= nil then template.text(own, vars) else template.render(`./screens/brief/{self.options.format}.md`, vars))
	local missing = brief_sections.missing(rendered, made)
	if own == nil or #missing == 0 then
		return rendered
	end
	local lines: { string } = { rendered, "", `## {self.t("brief.noted")}` }
	for _, left in missing do
		table.insert(lines, `\n### {self.t(`brief.{left.section}`)}\n\n{left.text}`)
	end
	return table.concat(lines, "\n")
end

--- Shows the brief as it would be.
function brief.preview(self: app.App)
	noting.catch_up(self)
	ui.say(brief.render(self, brief_draft.make(self)))
end

--- Whether there is anything to write a brief from.
local function has_content(self: app.App): boolean
	return #notebook.holding(self.doc) > 0 or #noting.unread(self.doc) > 0
end

--- Writes the brief. One that somebody has edited since is left alone: this one gets a name of its own, and that is said.
local function write(self: app.App, made: brief_document.Brief): string
	local rendered = brief.render(self, made) .. "\n"
	local own = self.doc.nietz
	local slug = self.doc.session.slug
	local date = string.sub(clock.now(), 1, 10)
	local suffix, number = "", 1
	while true do
		local key = { slug = slug, date = date .. suffix }
		local there = briefs:load(key)
		local kept = own.brief
		local ours = there ~= nil and kept ~= nil and kept.path == briefs:path(key) and kept.sha256 == text.sha256(there)
		if there == nil or ours or there == rendered then
			local path = briefs:save(rendered, { key = key, overwrite = true })
			own.brief = { path = path, sha256 = text.sha256(rendered), rests = json.array(brief_sections.rests(made)) }
			if number > 1 then
				ui.say(self.t("finish.edited", { path = `\`{path}\`` }))
			end
			return path
		end
		number += 1
		suffix = `-{number}`
	end
end

--- The result of a run that came to a brief: what was written, and where.
export type Finished = { status: string, ems: number, session: string, brief: string, journal: string }

--- Writes brief and journal, closes the session and returns the run's result, or nil where nothing was said yet.
function brief.finish(self: app.App): Finished?
	local s = self.doc.session
	if not has_content(self) then
		ui.say(self.t("finish.nothing"))
		return nil
	end
	-- Saved before the model calls, so that nothing is lost if the run is stopped in them.
	app.save(self)
	noting.catch_up(self)
	if s.ems < ems.TRANSITION then
		ui.say(self.t("finish.early", { ems = s.ems }))
	end
	local made = brief_draft.make(self)
	-- The session is closed when its brief is there: one whose brief cannot be written goes on.
	local brief_path = write(self, made)
	s.status = "completed"
	local path = app.save(self)
	local key = { slug = s.slug, date = string.sub(clock.now(), 1, 10) }
	local journal_path = journals:save(journal.render(self) .. "\n", { key = key, overwrite = true })
	ui.say(table.concat({
		translations.counted(
			self.t,
			"finish.title",
			session.answered(self.doc),
			{
				ems = s.ems,
				level = self.t(`levels.{ems.level(s.ems)}`),
				minutes = s.duration_minutes,
			} :: translations.Vars
		),
		"",
		"- " .. self.t("finish.brief", { path = `\`{brief_path}\`` }),
		"- " .. self.t("finish.journal", { path = `\`{journal_path}\`` }),
		"- " .. self.t("save.done", { path = `\`{path}\`` }),
	}, "\n"))
	if self.doc.nietz.private ~= nil then
		ui.say(self.t("finish.private", { path = `\`{path}\`` }))
	end
	statistics.record(self.t, self.doc)
	farewell.say(self, if s.ems >= ems.TRANSITION then "victory" else "perseverance")
	return { status = s.status, ems = s.ems, session = path, brief = brief_path, journal = journal_path }
end

return brief
