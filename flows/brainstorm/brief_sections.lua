--!strict
--- What a brief says, section by section, as templates get it. What holds in the ledger stands in its section, whatever a model
--- made of it: nothing that was said can be left out, and nothing that was taken back comes in.

local app = require("./app")
local assessments = require("./assessments")
local brief_draft = require("./brief_draft")
local clock = require("@nietz/clock")
local context = require("./context")
local ems = require("./ems")
local lang = require("./lang")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")
local session = require("./session")
local similarity = require("../common/similarity")
local stories = require("./stories")
local translations = require("../common/translations")

local brief_sections = {}

local function cell(value: string): string
	return (string.gsub(string.gsub(value, "|", "\\|"), "\n", " "))
end

--- Returns the words of the user that these entries rest on.
local function quotes(self: app.App, ids: { number }): { string }
	local found: { string } = {}
	for _, id in ids do
		local entry = ledger.find(self.doc.nietz.ledger, id)
		if entry ~= nil then
			table.insert(found, `#{id} “{cell(entry.quote or entry.text)}”`)
		end
	end
	return found
end

--- An entry of the ledger as a template shows it.
type Line = {
	id: number,
	text: string,
	bare: string,
	by: string,
	iteration: number,
	why: string,
	rejected: string,
	owner: string,
	date: string,
}

--- Returns the entries of a kind, as templates show them.
local function entries(self: app.App, kind: string): { Line }
	return list.map(notebook.holding(self.doc, { kind }), function(entry): Line
		local who = if entry.by == "user" then "" else entry.by
		return {
			id = entry.id,
			text = entry.text,
			-- Where a reason follows, the sentence does not end here.
			bare = if entry.why or entry.rejected then (string.gsub(entry.text, "%.$", "")) else entry.text,
			by = who,
			iteration = entry.turn,
			why = entry.why or "",
			rejected = entry.rejected or "",
			owner = entry.owner or "",
			date = entry.date or "",
		}
	end)
end

--- What a model wrote that rests on entries, with all of its words.
type Written = { from: { number }, words: string }

--- How many of an entry's words must stand in what was written for it.
local ENOUGH = 0.6

--- Whether something that was written for an entry says it: its figures and most of its words.
local function carries(one: Written, entry: { id: number, text: string }): boolean
	if table.find(one.from, entry.id) == nil or ledger.invented_number(entry.text, one.words) ~= nil then
		return false
	end
	return similarity.shared_words(entry.text, one.words) >= ENOUGH * #similarity.words(entry.text)
end

--- Returns the entries of a kind that none of these says.
local function unused(self: app.App, kind: string, used: { Written }): { Line }
	return list.filter(entries(self, kind), function(entry): boolean
		return not list.some(used, function(one): boolean
			return carries(one, entry)
		end)
	end)
end

local function written_risks(self: app.App): { Written }
	return list.map(self.doc.nietz.risks, function(risk): Written
		return { from = risk.from or {}, words = `{risk.risk} {risk.mitigation} {risk.owner or ""}` }
	end)
end

local function written_users(draft: brief_draft.Draft): { Written }
	return list.map(draft.users, function(user): Written
		return { from = user.from, words = user.text }
	end)
end

local function written_steps(draft: brief_draft.Draft): { Written }
	return list.map(draft.steps, function(step): Written
		return { from = step.from, words = `{step.step} {step.owner} {step.date}` }
	end)
end

--- A risk as a template shows it, with its place among them.
type RiskLine = {
	risk: string,
	mitigation: string,
	weight: string,
	high: boolean,
	owner: string,
	iteration: number,
	order: number,
}

local function risks(self: app.App): { RiskLine }
	local found: { RiskLine } = {}
	for _, risk in self.doc.nietz.risks do
		local weight = risk.probability * risk.impact
		table.insert(found, {
			risk = cell(risk.risk),
			mitigation = cell(risk.mitigation),
			weight = tostring(weight),
			high = weight >= assessments.MITIGATE,
			owner = risk.owner or "",
			iteration = risk.iteration,
			order = 10 - weight,
		})
	end
	for _, entry in unused(self, "risk", written_risks(self)) do
		table.insert(found, {
			risk = cell(entry.text),
			mitigation = "",
			weight = "",
			high = false,
			owner = entry.owner,
			iteration = entry.iteration,
			order = 0,
		})
	end
	for index, item in found do
		item.order = item.order * 1000 + index
	end
	table.sort(found, function(one: RiskLine, other: RiskLine): boolean
		return one.order < other.order
	end)
	return found
end

type Finding = { text: string, by: string, iteration: number }

local function findings(self: app.App): { Finding }
	local found = list.map(entries(self, "finding"), function(entry): Finding
		return { text = entry.text, by = entry.by, iteration = entry.iteration }
	end)
	for _, note in session.notes(self.doc, { "security", "spike", "lookups", "rivals", "aside" }) do
		local line = if note.kind == "aside" then `{note.about} → {note.text}` else note.text
		table.insert(found, { text = line, by = note.by or "", iteration = note.iteration })
	end
	return found
end

--- Returns these items, each with `trace`: where it comes from, as it stands behind a line.
local function traced(self: app.App, items: { any }): { any }
	return list.map(items, function(item): any
		local one = table.clone(item)
		one.trace = if (item.iteration or 0) > 0 then " " .. self.t("brief.trace", { iteration = item.iteration }) else ""
		return one
	end)
end

type StepLine = { step: string, owner: string, date: string, iteration: number }
type StoryLine = {
	story: string,
	priority: string,
	effort: string,
	iteration: number,
	criteria: { string },
	quotes: { string },
}

--- Returns everything that a template of a brief may show.
function brief_sections.of(self: app.App, draft: brief_draft.Draft): app.Vars
	local s = self.doc.session
	local own = self.doc.nietz
	local users = list.map(draft.users, function(user): Finding
		return { text = user.text, by = "", iteration = user.iteration }
	end)
	for _, entry in unused(self, "user", written_users(draft)) do
		table.insert(users, { text = entry.text, by = entry.by, iteration = entry.iteration })
	end
	local steps = list.map(draft.steps, function(step): StepLine
		return { step = step.step, owner = step.owner, date = step.date, iteration = step.iteration }
	end)
	local left: { Line } = if self.options.plan then unused(self, "step", written_steps(draft)) else {}
	for _, entry in left do
		table.insert(steps, { step = entry.text, owner = entry.owner, date = entry.date, iteration = entry.iteration })
	end
	local shown = list.map(draft.stories, function(story): StoryLine
		return {
			story = cell(story.story),
			priority = story.priority,
			effort = story.effort,
			iteration = story.iteration,
			criteria = list.map(story.criteria or {} :: { string }, cell),
			quotes = quotes(self, story.from or {}),
		}
	end)
	return {
		l = lang.data(self.lang, "brief"),
		s = { slug = s.slug, id = s.id, ems = s.ems, iterations = session.answered(self.doc), minutes = s.duration_minutes },
		iterations = translations.counted(self.t, "brief.iterations", session.answered(self.doc)),
		topic = own.topic,
		level = self.t(`levels.{ems.level(s.ems)}`),
		date = string.sub(clock.now(), 1, 10),
		size = stories.size(draft.stories),
		problem = draft.problem,
		origin = if draft.origin > 0 then " " .. self.t("brief.trace", { iteration = draft.origin }) else "",
		users = traced(self, users),
		goals = traced(self, entries(self, "goal")),
		scope = traced(self, entries(self, "scope")),
		out = traced(self, entries(self, "out")),
		constraints = traced(self, entries(self, "constraint")),
		facts = traced(self, entries(self, "fact")),
		decisions = traced(self, entries(self, "decision")),
		approaches = list.map(own.approaches or draft.approaches, function(one): brief_draft.Approach
			return { name = cell(one.name), how = cell(one.how), price = cell(one.price), recommended = one.recommended or false }
		end),
		stories = traced(self, shown),
		risks = risks(self),
		findings = traced(self, findings(self)),
		open = traced(self, entries(self, "open")),
		contested = traced(self, entries(self, "contested")),
		steps = traced(self, steps),
		ideas = traced(self, context.ideas(self)),
		sources = if own.about then own.about.files else {},
	}
end

--- What stands in a text: small letters, one blank between words, no marks of a table.
local function plain(value: string): string
	return ledger.plain((string.gsub(string.gsub(value, "\\|", "|"), "[%*_`]", "")))
end

--- Returns the entries that hold and that a brief does not say: a template of somebody's own may have no place for them, and a model
--- may have put a user or a step in other words.
function brief_sections.missing(self: app.App, rendered: string, draft: brief_draft.Draft): { ledger.Entry }
	local said = plain(rendered)
	local used = written_users(draft)
	for _, more in { written_steps(draft), written_risks(self) } do
		table.move(more, 1, #more, #used + 1, used)
	end
	return list.filter(notebook.holding(self.doc), function(entry): boolean
		local bare = string.gsub(plain(entry.text), "%.$", "")
		return string.find(said, bare, 1, true) == nil and not list.some(used, function(one): boolean
			return carries(one, entry)
		end)
	end)
end

return brief_sections
