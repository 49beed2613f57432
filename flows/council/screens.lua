--!strict
--- The answer as people read it: on the screen, as the record of a decision (ADR), and without names for whoever judges it.

local agreement = require("./agreement")
local app = require("./app")
local dissent = require("./dissent")
local list = require("../common/list")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")

local screens = {}

--- The parts of an answer that are lists, in order: their headings, and what they are called in a decision and in a reply. Those of
--- `ours` are of a council alone: nobody who is compared with one has them.
local PARTS: { { heading: string, field: string, asked: string?, ours: boolean? } } = {
	{ heading = "why", field = "reasons" },
	{ heading = "tradeoffs", field = "tradeoffs" },
	{ heading = "risks", field = "risks" },
	{ heading = "rejected", field = "rejected" },
	{ heading = "objections", field = "objections" },
	{ heading = "minority", field = "minorityReports", ours = true },
	{ heading = "refused", field = "holes", ours = true },
	{ heading = "assumptions", field = "assumptions" },
	{ heading = "open", field = "open" },
	{ heading = "steps", field = "nextSteps", asked = "next_steps" },
	{ heading = "known", field = "known", asked = "rests_on" },
}

--- A line of a screen, and what stands before it: an option, or who says it.
type Line = { text: string, head: string }

--- What of a session a screen needs, wherever it comes from.
type Source = { doc: session.Session, t: translations.Translate }

local function clean(rendered: string): string
	return text.trim((string.gsub(rendered, "\n\n\n+", "\n\n")))
end

--- Returns how the decision is carried, and how the debate ended.
local function standing(self: Source): string
	local made = self.doc.metadata.decision
	local carried = made.carried
	local cycles = translations.counted(self.t, "cycles", self.doc.debateCycles)
	local ending = self.t("answer.ending", { outcome = self.t(`outcome.{self.doc.metadata.outcome}`), cycles = cycles })
	if made.option == agreement.UNDECIDED or carried == nil then
		return ending
	end
	local votes = self.t("answer.carried", { by = carried.by, of = carried.of, sure = carried.confidence, percent = carried.percent })
	local others = list.map(made.carriedAllTheSame or {} :: { session.Point }, function(point: session.Point): string
		return point.from[1].name
	end)
	local too = if #others > 0 then ` {self.t("answer.carried_too", { who = table.concat(others, ", ") })}` else ""
	return `{votes}{too} {ending}`
end

--- Returns the lines of each part, by its heading.
local function parts_of(give: (field: string, ours: boolean) -> { Line }): { [string]: { Line } }
	local found: { [string]: { Line } } = {}
	for _, part in PARTS do
		found[part.heading] = give(part.field, part.ours == true)
	end
	return found
end

--- Returns the lines of the holes that were refused, each with why: what was mended or is open stands where it belongs.
local function refused_lines(t: translations.Translate, made: session.Decision): { Line }
	local found: { Line } = {}
	for _, hole in made.holes or {} :: { session.Hole } do
		if hole.how == "refused" and hole.why ~= nil then
			table.insert(found, { head = hole.name, text = t("answer.refused", { hole = hole.text, why = hole.why }) })
		end
	end
	return found
end

--- Returns the variables of a screen. Who said a line is not told, but for whoever disagrees: it stands in the session.
local function vars_of(self: Source): app.Values
	local made = self.doc.metadata.decision
	local function line_of(point: session.Point): Line
		local option = list.find(self.doc.metadata.options, function(one: session.Option): boolean
			return one.id == point.option
		end)
		return { head = if option ~= nil then session.name_of(option) else "", text = point.text }
	end
	local function report_of(point: session.Point): Line
		return { head = point.from[1].name, text = dissent.report_text(self, point) }
	end
	return {
		title = self.t(if made.option == agreement.UNDECIDED then "heading.undecided" else "heading.decision"),
		undecided = made.option == agreement.UNDECIDED,
		composed = if made.composed then self.t("answer.composed") else "",
		decision = line_of(made.decision),
		standing = standing(self),
		parts = parts_of(function(field): { Line }
			local points: { session.Point } = (made :: app.Values)[field] or {}
			if field == "holes" then
				return refused_lines(self.t, made)
			end
			return list.map(points, if field == "minorityReports" then report_of else line_of)
		end),
	}
end

--- Returns the sections of a screen that have anything in them, in order.
local function sections_of(t: translations.Translate, vars: app.Values): { app.Values }
	local found: { app.Values } = {}
	for _, part in PARTS do
		local items = vars.parts[part.heading]
		if #items > 0 then
			local title = if part.heading == "open" and vars.undecided then "would_decide" else part.heading
			table.insert(found, { title = t(`heading.{title}`), items = items })
		end
	end
	return found
end

--- Returns the answer as text.
function screens.answer(self: Source): string
	local vars = vars_of(self)
	vars.sections = sections_of(self.t, vars)
	return clean(template.render("./screens/answer.md", vars))
end

--- The longest request that a record repeats, in letters; a longer one is what the record rests on.
local REQUEST = 300

--- Returns the record of a decision, in the form of an ADR, from a session.
function screens.record(doc: session.Session, t: translations.Translate): string
	local vars = vars_of({ doc = doc, t = t })
	vars.heading, vars.title = vars.title, doc.metadata.topic or doc.requestText
	vars.date = string.sub(doc.updatedAt, 1, 10)
	vars.status = t(if doc.status == "completed" and not vars.undecided then "record.accepted" else "record.open")
	vars.request = if #doc.requestText <= REQUEST then doc.requestText else ""
	vars.people = table.concat(
		list.map(doc.personaSelection.selectedPersonas, function(one: session.Participant): string
			return one.name
		end),
		", "
	)
	vars.l = {
		status = t("record.status"),
		date = t("record.date"),
		people = t("record.people"),
		session = t("record.session"),
		context = t("record.context"),
	}
	vars.session = doc.sessionId
	vars.known = vars.parts.known
	vars.parts.known = {}
	vars.sections = sections_of(t, vars)
	return clean(template.render("./screens/record.md", vars)) .. "\n"
end

--- Returns an answer that was not made by a council, or one as it is judged: the same sections for all, without names.
function screens.anonymous(t: translations.Translate, value: app.Values): string
	local function line_of(line: string): Line
		return { text = app.to_line(line), head = "" }
	end
	local vars: app.Values = {
		title = t("heading.decision"),
		undecided = false,
		composed = "",
		decision = line_of(value.decision),
		standing = "",
		parts = parts_of(function(field): { Line }
			return list.map(value[field] or {} :: { string }, line_of)
		end),
	}
	vars.sections = sections_of(t, vars)
	return clean(template.render("./screens/answer.md", vars))
end

--- Returns a reply with its parts called as in a decision.
function screens.as_decision(value: app.Values): app.Values
	local made = table.clone(value)
	for _, part in PARTS do
		made[part.field] = value[part.asked or part.field]
	end
	return made
end

--- Returns the council's answer as whoever judges it reads it: no names, no letters, no ids; dissent is what still speaks against it.
function screens.judged(self: app.App): string
	local made = self.doc.metadata.decision
	local words: { [string]: string } = {}
	for _, participant in self.doc.participants do
		if participant.type == "persona" then
			words[participant.name] = self.t("judged.somebody")
		end
	end
	local function plain(line: string): string
		local out = line
		for name, word in words do
			local from, last = string.find(out, name, 1, true)
			while from ~= nil and last ~= nil do
				out = string.sub(out, 1, from - 1) .. word .. string.sub(out, last + 1)
				from, last = string.find(out, name, from + #word, true)
			end
		end
		for _, option in self.doc.metadata.options do
			out = string.gsub(out, `([Oo]ption) {option.id}%f[%W]`, function(): string
				return `"{session.name_of(option)}"`
			end)
		end
		return (string.gsub(string.gsub(out, "%s*%(?#?[PU]%d+%)?", ""), "%*", ""))
	end
	local function lines(points: { session.Point }?): { string }
		return list.map(points or {} :: { session.Point }, function(point: session.Point): string
			return plain(if point.option ~= nil then `{app.option_name(self, point.option)}: {point.text}` else point.text)
		end)
	end
	local judged: app.Values = { decision = plain(made.decision.text), objections = lines(made.minorityReports) }
	for _, part in PARTS do
		-- A small mind's other answers tell nothing of what they rest on.
		local is_asked = part.heading ~= "known" or not app.is_small(self, nil)
		if not part.ours and is_asked and part.heading ~= "objections" then
			judged[part.field] = lines(made[part.field])
		end
	end
	return screens.anonymous(self.t, judged)
end

return screens
