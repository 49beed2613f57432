--!strict
--- The answer as people read it: on the screen, as the record of a decision (ADR), and without names for whoever judges it.

local agreement = require("./agreement")
local app = require("./app")
local dissent = require("./dissent")
local draft = require("./draft")
local lang = require("./lang")
local list = require("../common/list")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")

local screens = {}

--- A part of an answer below its table: its heading, the lists of a decision that it tells, and whether these are paragraphs or
--- steps. Those of `ours` are of a council alone: nobody who is compared with one has them.
type Part = { heading: string, fields: { string }, style: "text" | "steps" | nil, ours: boolean? }

--- The parts in the order in which they are read.
local PARTS: { Part } = {
	{ heading = "sinks", fields = { "sinks" } },
	{ heading = "context", fields = { "context" }, style = "text" },
	{ heading = "why", fields = { "reasons" } },
	{ heading = "steps", fields = { "nextSteps" }, style = "steps" },
	{ heading = "tradeoffs", fields = { "tradeoffs" } },
	{ heading = "risks", fields = { "risks" } },
	{ heading = "rejected", fields = { "rejected" } },
	{ heading = "disputed", fields = { "disputed", "minorityReports", "holes" }, ours = true },
	{ heading = "objections", fields = { "objections" } },
	{ heading = "assumptions", fields = { "assumptions" } },
	{ heading = "open", fields = { "open" } },
	{ heading = "known", fields = { "known" } },
}

--- What a reply calls parts that a decision has under another name.
local ASKED: { [string]: string } = { next_steps = "nextSteps" }

--- A line of a screen, and what stands before it: an option, a label, or who says it.
type Line = { text: string, head: string }

--- What of a session a screen needs, wherever it comes from.
type Source = { doc: session.Session, t: translations.Translate }

local function clean(rendered: string): string
	return text.trim((string.gsub(rendered, "\n\n\n+", "\n\n")))
end

--- Returns how the answer came about, in one line: who debated, who carries it, and what was asked before.
local function origin(self: Source): string
	local made = self.doc.metadata.decision
	local carried = made.carried
	local outcome = self.doc.metadata.outcome
	local who = list.map(self.doc.personaSelection.selectedPersonas, function(one: session.Participant): string
		return lang.called(self.t, one.name)
	end)
	local vars: translations.Vars = { of = if carried ~= nil then carried.of else #who, who = table.concat(who, ", ") }
	local parts: { string } = { translations.counted(self.t, "answer.debated", self.doc.debateCycles, vars) }
	if made.option ~= agreement.UNDECIDED and carried ~= nil then
		local others = list.map(made.carriedAllTheSame or {} :: { session.Point }, function(point: session.Point): string
			return lang.called(self.t, point.from[1].name)
		end)
		local too = if #others > 0 then self.t("answer.carried_too", { who = table.concat(others, ", ") }) else ""
		table.insert(parts, self.t("answer.carried", { by = carried.by, of = carried.of, too = too }))
	end
	if outcome ~= "converged" then
		table.insert(parts, self.t("answer.ending", { outcome = self.t(`outcome.{outcome}`) }))
	end
	local counts: { [string]: number } = {}
	for _, question in self.doc.clarificationQuestions do
		local how = if question.status == "skipped" and question.suggestedDefault ~= nil
			then "assumed"
			elseif question.status == "answered" then "answered"
			else "left"
		counts[how] = (counts[how] or 0) + 1
	end
	local told: { string } = {}
	for _, how in { "answered", "assumed", "left" } do
		if counts[how] ~= nil then
			table.insert(told, self.t(`answer.{how}`, { count = counts[how] }))
		end
	end
	if #told > 0 then
		table.insert(parts, self.t("answer.asked", { how = table.concat(told, ", ") }))
	end
	return `{self.t("answer.origin")} {table.concat(parts, " ")}`
end

--- Returns the lines of each part, by its heading; `give` returns those of a list.
local function parts_of(give: (field: string, ours: boolean) -> { Line }): { [string]: { Line } }
	local found: { [string]: { Line } } = {}
	for _, part in PARTS do
		local lines: { Line } = {}
		for _, field in part.fields do
			for _, line in give(field, part.ours == true) do
				table.insert(lines, line)
			end
		end
		found[part.heading] = lines
	end
	return found
end

--- Returns the lines of the holes that were refused, each with why: what was mended or is open stands where it belongs.
local function refused_lines(t: translations.Translate, made: session.Decision): { Line }
	local found: { Line } = {}
	for _, hole in made.holes or {} :: { session.Hole } do
		if hole.how == "refused" and hole.why ~= nil then
			table.insert(found, { head = lang.called(t, hole.name), text = t("answer.refused", { hole = hole.text, why = hole.why }) })
		end
	end
	return found
end

--- Returns the rows of the table at the top; a bar within a cell would end it.
local function rows_of(lines: { Line }): { Line }
	local function cell(value: string): string
		return (string.gsub(value, "|", "\\|"))
	end
	return list.map(lines, function(line): Line
		return { head = cell(line.head), text = cell(line.text) }
	end)
end

--- Returns the variables of a screen. Who said a line is not told, but for whoever disagrees: it stands in the session.
local function vars_of(self: Source): app.Values
	local made = self.doc.metadata.decision
	local function line_of(point: session.Point): Line
		local option = list.find(self.doc.metadata.options, function(one: session.Option): boolean
			return one.id == point.option
		end)
		return { head = if option ~= nil then session.name_of(option) else point.label or "", text = point.text }
	end
	local function report_of(point: session.Point): Line
		return {
			head = self.t("answer.against", { who = lang.called(self.t, point.from[1].name) }),
			text = dissent.report_text(self, point),
		}
	end
	return {
		title = self.t(if made.option == agreement.UNDECIDED then "heading.undecided" else "heading.decision"),
		undecided = made.option == agreement.UNDECIDED,
		composed = if made.composed then self.t("answer.composed") else "",
		decision = line_of(made.decision),
		glance = rows_of(list.map(made.glance or {} :: { session.Point }, line_of)),
		in_short = self.t("heading.glance"),
		origin = origin(self),
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
			table.insert(found, { title = t(`heading.{title}`), style = part.style or "", items = items })
		end
	end
	return found
end

--- Up to how many letters the question itself is a title where nobody gave one; of a longer one, what it is about.
local QUESTION = 140

--- Returns the title of a memo: its own, or the question.
local function title_of(doc: session.Session): string
	local is_short = #doc.requestText <= QUESTION
	return doc.metadata.decision.title or (if is_short then doc.requestText else doc.metadata.topic or doc.requestText)
end

--- Returns a memo below its title.
local function memo_text(title: string, memo: string): string
	return `# {title}\n\n{memo}`
end

--- Returns the answer as text.
function screens.answer(self: Source): string
	local memo = self.doc.metadata.decision.memo
	if memo ~= nil then
		return memo_text(title_of(self.doc), memo)
	end
	local vars = vars_of(self)
	vars.level, vars.sections = "###", sections_of(self.t, vars)
	return clean(template.render("./screens/answer.md", vars))
end

--- Returns what stands below a memo on the screen, and in no memo: how it came about, who disagrees, and what nobody could mend. Other
--- answers tell it themselves.
function screens.notes(self: Source): string
	local made = self.doc.metadata.decision
	if made.memo == nil then
		return ""
	end
	local lines: { string } = { `*{origin(self)}*`, "" }
	local names = list.map(made.minorityReports or {} :: { session.Point }, function(point): string
		return lang.called(self.t, point.from[1].name)
	end)
	if #names > 0 then
		table.insert(lines, `- {self.t("notes.dissent", { who = table.concat(names, ", ") })}`)
	end
	for _, hole in made.holes or {} :: { session.Hole } do
		if hole.why ~= nil then
			local key = if hole.how == "refused" then "answer.refused" else "notes.hole"
			table.insert(lines, `- **{lang.called(self.t, hole.name)}**: {self.t(key, { hole = hole.text, why = hole.why :: string })}`)
		end
	end
	local figures = list.map(made.figures or {} :: { session.Figure }, function(one): string
		return one.figure
	end)
	if #figures > 0 then
		table.insert(lines, `- {self.t("notes.figures", { figures = table.concat(figures, ", ") })}`)
	end
	local missed: { string } = {}
	for _, one in made.leftOut or {} :: { session.LeftOut } do
		if one.missed then
			table.insert(missed, `“{one.text}”`)
		end
	end
	if #missed > 0 then
		table.insert(lines, `- {self.t("notes.missed", { words = table.concat(missed, " ") })}`)
	end
	return text.trim(table.concat(lines, "\n"))
end

--- Returns the answer of an older session without its heading, below which its decision stands.
local function older_answer(doc: session.Session): string?
	local text = doc.finalAnswer
	if doc.metadata.decision.sections == nil or type(text) ~= "string" then
		return nil
	end
	return (string.gsub(string.gsub(text, "^#+ [^\n]*\n+", ""), "\n###", "\n##"))
end

--- Returns the record of a decision, in the form of an ADR, from a session.
function screens.record(doc: session.Session, t: translations.Translate): string
	local vars = vars_of({ doc = doc, t = t })
	vars.title = title_of(doc)
	vars.date = string.sub(doc.updatedAt, 1, 10)
	vars.status = t(if doc.status == "completed" and not vars.undecided then "record.recommended" else "record.open")
	vars.session = doc.sessionId
	vars.level, vars.sections = "##", sections_of(t, vars)
	vars.memo = doc.metadata.decision.memo or older_answer(doc) or false
	return clean(template.render("./screens/record.md", vars)) .. "\n"
end

--- Returns an answer that was not made by a council, or one as it is judged: the same sections for all, without names. Its lines are
--- texts, or have a label and a text.
function screens.anonymous(t: translations.Translate, value: app.Values): string
	if value.memo ~= nil then
		local memo = draft.memo(value)
		return memo_text(memo.title, draft.shown(memo.text))
	end
	local function line_of(line: app.Values | string): Line
		if type(line) == "string" then
			return { text = app.to_line(line), head = "" }
		end
		return { text = app.to_line(line.text), head = app.to_line(line.label) }
	end
	local function lines_of(field: string): { Line }
		local lines = value[field] or {}
		return list.map(if type(lines) == "string" then { lines } else lines, line_of)
	end
	local vars: app.Values = {
		title = t("heading.decision"),
		undecided = false,
		composed = "",
		decision = line_of(value.decision),
		glance = rows_of(lines_of("glance")),
		in_short = t("heading.glance"),
		origin = "",
		parts = parts_of(lines_of),
	}
	vars.level, vars.sections = "###", sections_of(t, vars)
	return clean(template.render("./screens/answer.md", vars))
end

--- Returns a reply with its parts called as in a decision.
function screens.as_decision(value: app.Values): app.Values
	local made = table.clone(value)
	for asked, field in ASKED do
		made[field] = value[asked]
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
	local function nameless(line: string): string
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
		return out
	end
	if made.memo ~= nil then
		return memo_text(nameless(title_of(self.doc)), nameless(made.memo))
	end
	local function plain(line: string): string
		return (string.gsub(string.gsub(nameless(line), "%s*%(?#?[PU]%d+%)?", ""), "%*", ""))
	end
	local function lines(points: { session.Point }?): { app.Values }
		return list.map(points or {} :: { session.Point }, function(point: session.Point): app.Values
			local head = if point.option ~= nil then app.option_name(self, point.option) else point.label or ""
			return { label = plain(head), text = plain(point.text) }
		end)
	end
	local objections = lines(made.minorityReports)
	for _, line in lines(made.disputed) do
		table.insert(objections, line)
	end
	local judged: app.Values = { decision = plain(made.decision.text), glance = lines(made.glance), objections = objections }
	local values: app.Values = made :: any
	for _, part in PARTS do
		-- Other answers tell nothing of what they rest on.
		local is_asked = part.heading ~= "known" or not app.is_small(self, nil)
		if not part.ours and is_asked and part.heading ~= "objections" then
			judged[part.fields[1]] = lines(values[part.fields[1]])
		end
	end
	return screens.anonymous(self.t, judged)
end

return screens
