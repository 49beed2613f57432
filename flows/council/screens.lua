--!strict
--- The answer as people read it: on the screen, as the record of a decision (ADR), and without names for whoever judges it.

local agreement = require("./agreement")
local app = require("./app")
local list = require("../common/list")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")

local screens = {}

--- The parts of an answer that are lists, in order: their headings, and what they are called in a decision and in a reply.
local PARTS: { { heading: string, field: string, asked: string?, named: boolean? } } = {
	{ heading = "why", field = "reasons" },
	{ heading = "tradeoffs", field = "tradeoffs" },
	{ heading = "risks", field = "risks" },
	{ heading = "assumptions", field = "assumptions" },
	{ heading = "rejected", field = "rejected" },
	{ heading = "objections", field = "objections" },
	{ heading = "open", field = "open" },
	{ heading = "steps", field = "nextSteps", asked = "next_steps" },
	{ heading = "minority", field = "minorityReports", named = true },
	{ heading = "carried", field = "carriedAllTheSame", named = true },
	{ heading = "known", field = "known" },
}

--- A line of a screen, and who said it.
type Line = { text: string, who: string }

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
	return `{votes} {ending}`
end

--- Returns the lines of each part, by its heading.
local function parts_of(give: (field: string, named: boolean) -> { Line }): { [string]: { Line } }
	local found: { [string]: { Line } } = {}
	for _, part in PARTS do
		found[part.heading] = give(part.field, part.named == true)
	end
	return found
end

--- Returns the variables of a screen. Names and turns are told with `names`.
local function vars_of(self: Source, names: boolean): app.Values
	local numbers: { [string]: number } = {}
	for _, turn in self.doc.messageTurns do
		numbers[turn.turnId] = turn.sequenceNumber
	end
	local function line_of(point: session.Point): Line
		local who: { string } = {}
		for _, source in point.from or {} :: { session.From } do
			table.insert(who, `{source.name} #{numbers[source.turnId]}`)
		end
		return { text = point.text, who = if names then table.concat(who, ", ") else "" }
	end
	local made = self.doc.metadata.decision
	local option = list.find(self.doc.metadata.options, function(one: session.Option): boolean
		return one.id == made.option
	end)
	return {
		title = self.t(if made.option == agreement.UNDECIDED then "heading.undecided" else "heading.decision"),
		undecided = made.option == agreement.UNDECIDED,
		composed = if made.composed then self.t("answer.composed") else "",
		decision = line_of(made.decision),
		option = if option then self.t("answer.option", { id = option.id, text = (string.gsub(option.text, "%.$", "")) }) else "",
		standing = standing(self),
		parts = parts_of(function(field, named): { Line }
			return if named and not names then {} else list.map((made :: app.Values)[field] or {} :: { session.Point }, line_of)
		end),
	}
end

--- Returns the sections of a screen that have anything in them, in order: all, or those of these headings.
local function sections_of(t: translations.Translate, vars: app.Values, headings: { string }?): { app.Values }
	local found: { app.Values } = {}
	for _, part in PARTS do
		local items = vars.parts[part.heading]
		if #items > 0 and (headings == nil or table.find(headings, part.heading) ~= nil) then
			local title = if part.heading == "open" and vars.undecided then "would_decide" else part.heading
			table.insert(found, { title = t(`heading.{title}`), items = items, named = part.named == true })
		end
	end
	return found
end

--- Returns the answer as text.
function screens.answer(self: Source, names: boolean): string
	local vars = vars_of(self, names)
	vars.sections = sections_of(self.t, vars)
	return clean(template.render("./screens/answer.md", vars))
end

--- Returns the options with why each was rejected, and what was rejected that is none of them: no option is told twice.
local function options_of(doc: session.Session, rejected: { Line }): ({ app.Values }, { Line })
	local left = table.clone(rejected)
	local options = list.map(doc.metadata.options, function(option: session.Option): app.Values
		local told = string.gsub(option.text, "%.$", "")
		local head = `{option.id}, {told}: `
		for index, item in left do
			if string.sub(item.text, 1, #head) == head then
				table.remove(left, index)
				return { id = option.id, text = told, why = string.sub(item.text, #head + 1), who = item.who }
			end
		end
		return { id = option.id, text = told, why = "", who = "" }
	end)
	return options, left
end

--- Returns the record of a decision, in the form of an ADR, from a session.
function screens.record(doc: session.Session, t: translations.Translate): string
	local vars = vars_of({ doc = doc, t = t }, true)
	vars.heading, vars.title = vars.title, doc.metadata.topic or doc.requestText
	vars.date = string.sub(doc.updatedAt, 1, 10)
	vars.status = t(if doc.status == "completed" and not vars.undecided then "record.accepted" else "record.open")
	vars.request = doc.requestText
	vars.options, vars.parts.rejected = options_of(doc, vars.parts.rejected)
	vars.option = if vars.option ~= "" then t("record.option", { id = doc.metadata.decision.option }) else ""
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
		options = t("record.options"),
		consequences = t("record.consequences"),
		rejected = t("heading.rejected"),
	}
	vars.session = doc.sessionId
	vars.known = vars.parts.known
	vars.chosen = sections_of(t, vars, { "why", "rejected" })
	vars.consequences = sections_of(t, vars, { "tradeoffs", "risks", "assumptions", "open", "steps", "minority", "carried" })
	return clean(template.render("./screens/record.md", vars)) .. "\n"
end

--- Returns an answer that was not made by a council, or one as it is judged: the same sections for all, without names.
function screens.anonymous(t: translations.Translate, value: app.Values): string
	local function line_of(line: string): Line
		return { text = app.to_line(line), who = "" }
	end
	local vars: app.Values = {
		title = t("heading.decision"),
		undecided = false,
		composed = "",
		decision = line_of(value.decision),
		option = "",
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
			out = string.gsub(out, `^{option.id}, `, "")
			out = string.gsub(out, `([Oo]ption) {option.id}%f[%W]`, function(): string
				return `"{option.text}"`
			end)
		end
		return (string.gsub(string.gsub(out, "%s*%(?#?[PU]%d+%)?", ""), "%*", ""))
	end
	local function lines(points: { session.Point }?): { string }
		return list.map(points or {} :: { session.Point }, function(point: session.Point): string
			return plain(point.text)
		end)
	end
	local judged: app.Values = { decision = plain(made.decision.text), objections = lines(made.minorityReports) }
	for _, part in PARTS do
		if part.named ~= true and part.heading ~= "known" and part.heading ~= "objections" then
			judged[part.field] = lines(made[part.field])
		end
	end
	return screens.anonymous(self.t, judged)
end

return screens
