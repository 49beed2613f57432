--!strict
--- The answer as people read it: on the screen, as the record of a decision (ADR), and without names for whoever judges it.

local agreement = require("./agreement")
local app = require("./app")
local list = require("../common/list")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")

local screens = {}

local HEADINGS = {
	"decision",
	"undecided",
	"why",
	"tradeoffs",
	"risks",
	"assumptions",
	"rejected",
	"open",
	"would_decide",
	"steps",
	"minority",
	"carried",
	"known",
	"objections",
}

--- What of a session a screen needs, wherever it comes from.
type Source = { doc: any, t: translations.Translate }

local function headings(t: translations.Translate): { [string]: string }
	local found: { [string]: string } = {}
	for _, name in HEADINGS do
		found[name] = t(`heading.{name}`)
	end
	return found
end

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

--- Returns what the user said and still holds.
local function known(doc: any): { any }
	return list.map(doc.metadata.decision.known or {} :: { any }, function(fact: any): any
		return { text = fact.text, who = "" }
	end)
end

--- Returns the variables of a screen. Names and turns are told with `names`.
local function vars_of(self: Source, names: boolean): { [string]: any }
	local numbers: { [string]: number } = {}
	for _, turn in self.doc.messageTurns do
		numbers[turn.turnId] = turn.sequenceNumber
	end
	local function point_vars(point: any): any
		local who: { string } = {}
		for _, source in point.from do
			table.insert(who, `{source.name} #{numbers[source.turnId]}`)
		end
		return { text = point.text, who = if names then table.concat(who, ", ") else "" }
	end
	local function points(items: { any }?): { any }
		return list.map(items or {} :: { any }, point_vars)
	end
	local made = self.doc.metadata.decision
	local option = list.find(self.doc.metadata.options, function(one: any): boolean
		return one.id == made.option
	end)
	return {
		h = headings(self.t),
		undecided = made.option == agreement.UNDECIDED,
		composed = if made.composed then self.t("answer.composed") else "",
		decision = point_vars(made.decision),
		option = if option then self.t("answer.option", { id = option.id, text = option.text }) else "",
		standing = standing(self),
		parts = {
			why = points(made.reasons),
			tradeoffs = points(made.tradeoffs),
			risks = points(made.risks),
			assumptions = points(made.assumptions),
			rejected = points(made.rejected),
			open = points(made.open),
			steps = points(made.nextSteps),
			minority = if names then points(made.minorityReports) else {},
			carried = if names then points(made.carriedAllTheSame) else {},
			known = known(self.doc),
		},
	}
end

--- Returns the sections of a screen that have anything in them, in this order.
local function sections_of(vars: { [string]: any }, order: { string }): { any }
	local found: { any } = {}
	for _, name in order do
		local items = vars.parts[name] or {}
		if #items > 0 then
			local title = if name == "open" and vars.undecided then "would_decide" else name
			table.insert(found, { title = vars.h[title], items = items, named = name == "minority" or name == "carried" })
		end
	end
	return found
end

local ALL = { "why", "tradeoffs", "risks", "assumptions", "rejected", "objections", "open", "steps", "minority", "carried", "known" }

--- Returns the answer as text.
function screens.answer(self: Source, names: boolean): string
	local vars = vars_of(self, names)
	vars.sections = sections_of(vars, ALL)
	return clean(template.render("./screens/answer.md", vars))
end

--- Returns the record of a decision, in the form of an ADR, from a session.
function screens.record(doc: any, t: translations.Translate): string
	local vars = vars_of({ doc = doc, t = t }, true)
	vars.title = doc.metadata.topic or doc.requestText
	vars.date = string.sub(doc.updatedAt, 1, 10)
	vars.status = t(if doc.status == "completed" and not vars.undecided then "record.accepted" else "record.open")
	vars.request = doc.requestText
	vars.options = list.map(doc.metadata.options, function(option: any): any
		return { id = option.id, text = option.text }
	end)
	vars.people = table.concat(
		list.map(doc.personaSelection.selectedPersonas, function(one: any): string
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
	}
	vars.session = doc.sessionId
	vars.known = vars.parts.known
	vars.chosen = sections_of(vars, { "why", "rejected" })
	vars.consequences = sections_of(vars, { "tradeoffs", "risks", "assumptions", "open", "steps", "minority", "carried" })
	return clean(template.render("./screens/record.md", vars)) .. "\n"
end

--- Returns an answer that was not made by a council, or one as it is judged: the same sections for all, without names.
function screens.anonymous(t: translations.Translate, value: any): string
	local function points(items: { string }?): { any }
		return list.map(items or {} :: { string }, function(line): any
			return { text = app.to_line(line), who = "" }
		end)
	end
	local vars: { [string]: any } = {
		h = headings(t),
		undecided = false,
		composed = "",
		decision = { text = app.to_line(value.decision), who = "" },
		option = "",
		standing = "",
		parts = {
			why = points(value.reasons),
			tradeoffs = points(value.tradeoffs),
			risks = points(value.risks),
			assumptions = points(value.assumptions),
			rejected = points(value.rejected),
			open = points(value.open),
			steps = points(value.next_steps),
			objections = points(value.objections),
		},
	}
	vars.sections = sections_of(vars, ALL)
	return clean(template.render("./screens/answer.md", vars))
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
	local function lines(points: { any }?): { string }
		return list.map(points or {} :: { any }, function(point: any): string
			return plain(point.text)
		end)
	end
	return screens.anonymous(self.t, {
		decision = plain(made.decision.text),
		reasons = lines(made.reasons),
		tradeoffs = lines(made.tradeoffs),
		risks = lines(made.risks),
		assumptions = lines(made.assumptions),
		rejected = lines(made.rejected),
		objections = lines(made.minorityReports),
		open = lines(made.open),
		next_steps = lines(made.nextSteps),
	})
end

return screens
