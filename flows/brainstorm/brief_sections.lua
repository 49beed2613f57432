--!strict
--- What a brief says, section by section, as templates get it, and what of it a template has no place for.

local app = require("./app")
local assessments = require("./assessments")
local brief_document = require("./brief_document")
local clock = require("@nietz/clock")
local ems = require("./ems")
local json = require("@nietz/json")
local lang = require("./lang")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")
local session = require("./session")
local similarity = require("../common/similarity")
local stories = require("./stories")
local translations = require("../common/translations")

local brief_sections = {}

type Item = brief_document.Item
type Document = brief_document.Document

local function cell(value: string?): string
	return (string.gsub(string.gsub(value or "", "|", "\\|"), "\n", " "))
end

--- Returns the entries that an item rests on.
local function entries_of(self: app.App, item: Item): { ledger.Entry }
	local found: { ledger.Entry } = {}
	for _, id in item.from do
		local entry = ledger.find(self.doc.nietz.ledger, id)
		if entry ~= nil then
			table.insert(found, entry)
		end
	end
	return found
end

--- Returns the iteration that an item comes from, 0 where none is known.
local function iteration_of(self: app.App, item: Item): number
	local first = entries_of(self, item)[1]
	return if first then first.turn else item.iteration or 0
end

--- Returns who said it, where no item of the user's is among what it rests on.
local function by_of(self: app.App, item: Item): string
	local entries = entries_of(self, item)
	local by_user = list.some(entries, function(entry): boolean
		return entry.by == "user"
	end)
	return if by_user or #entries == 0 then "" else entries[1].by
end

--- Returns what stands behind an item that is not the user's: that it is a suggestion. A small mind is not trusted to say which of
--- its items are its own.
local function mark_of(self: app.App, item: Item): string
	if self.mind == "small" then
		return ""
	end
	local by_user = list.some(entries_of(self, item), function(entry): boolean
		return entry.by == "user"
	end)
	return if by_user then "" else ` *({self.t("brief.suggested")})*`
end

--- An item as a template shows it. `bare` is its text where a reason follows, so that the sentence does not end there; `trace`
--- stands behind a line that says where it comes from.
type Line = {
	id: number,
	name: string,
	text: string,
	bare: string,
	by: string,
	iteration: number,
	trace: string,
	mark: string,
	own: boolean,
	why: string,
	rejected: string,
	rule: string,
	default: string,
	owner: string,
	date: string,
}

--- Returns a part that a sentence of its own is made of, without its last dot.
local function without_stop(value: string?): string
	return (string.gsub(value or "", "%.$", ""))
end

--- Returns it with a capital letter.
local function begun(value: string?): string
	return (string.gsub(without_stop(value), "^%l", string.upper))
end

local function line_of(self: app.App, item: Item): Line
	local iteration = iteration_of(self, item)
	local mark = mark_of(self, item)
	local reasoned = (item.why or "") ~= "" or (item.rejected or "") ~= ""
	return {
		id = item.from[1] or 0,
		name = cell(item.name),
		text = (string.gsub(item.text, "\n", " ")),
		bare = if reasoned then without_stop(item.text) else item.text,
		by = by_of(self, item),
		iteration = iteration,
		trace = if iteration > 0 then " " .. self.t("brief.trace", { iteration = iteration }) else "",
		mark = mark,
		own = mark ~= "",
		why = begun(item.why),
		rejected = begun(item.rejected),
		rule = without_stop(item.rule),
		default = without_stop(item.default),
		owner = if item.unnamed then `{item.owner} *({self.t("brief.suggested")})*` else item.owner or "",
		date = item.date or "",
	}
end

--- Returns the words of the user that an item rests on.
local function quotes_of(self: app.App, item: Item): { string }
	return list.map(entries_of(self, item), function(entry): string
		return `#{entry.id} “{entry.quote or entry.text}”`
	end)
end

--- Returns what stands behind a part of an item that its writer may have made up: that it is a suggestion, where it rests on nothing
--- and the item itself does not say so.
local function part_mark(self: app.App, item: Item, part: string?, from: { number }?): string
	local is_own = self.mind == "large" and (part or "") ~= "" and #(from or {}) == 0
	return if is_own and mark_of(self, item) == "" then ` *({self.t("brief.suggested")})*` else ""
end

type StoryLine = Line & {
	story: string,
	priority: string,
	effort: string,
	takes: string,
	weight: string,
	criteria: { string },
	quotes: { string },
}

local function story_of(self: app.App, item: Item): StoryLine
	local line = line_of(self, item) :: any
	line.story = line.text
	line.priority, line.effort = item.priority or "", item.effort or ""
	line.takes = if item.effort ~= nil then self.t(`brief.takes.{item.effort}`) else ""
	line.weight = if item.priority ~= nil then self.t(`brief.weights.{item.priority}`) else ""
	line.criteria = item.criteria or {}
	line.quotes = quotes_of(self, item)
	return line
end

type RiskLine = Line & { risk: string, mitigation: string, weight: string, high: boolean, order: number }

--- Returns the risks, those first that nobody has weighed, then the heaviest.
local function risks_of(self: app.App, items: { Item }): { RiskLine }
	local found: { RiskLine } = {}
	for index, item in items do
		local line = line_of(self, item) :: any
		local weight = (item.probability or 0) * (item.impact or 0)
		line.risk = cell(item.text)
		line.mitigation = cell(item.mitigation) .. part_mark(self, item, item.mitigation, item.mitigation_from)
		line.weight = if weight > 0 then tostring(weight) else ""
		line.high = weight >= assessments.MITIGATE
		line.order = (if weight > 0 then 10 - weight else 0) * 1000 + index
		table.insert(found, line)
	end
	table.sort(found, function(one: RiskLine, other: RiskLine): boolean
		return one.order < other.order
	end)
	return found
end

type Finding = { text: string, by: string, iteration: number, trace: string }

local function finding(self: app.App, value: string, by: string, iteration: number): Finding
	local trace = if iteration > 0 then " " .. self.t("brief.trace", { iteration = iteration }) else ""
	return { text = value, by = by, iteration = iteration, trace = trace }
end

--- How much of a note must stand in a brief for it to be told there.
local TOLD = 0.6

--- Returns what was found beside the questions and stands nowhere else: of a large mind's brief, what its writer did not take up.
local function findings_of(self: app.App, document: Document): { Finding }
	local found: { Finding } = {}
	local small = self.mind == "small"
	if small then
		for _, entry in notebook.holding(self.doc, { "finding" }) do
			table.insert(found, finding(self, entry.text, entry.by, entry.turn))
		end
	end
	local all = brief_document.all_words(document)
	local kinds = { "security", "spike", "lookups", "rivals" }
	if small then
		table.insert(kinds, "aside")
	end
	for _, note in session.notes(self.doc, kinds) do
		local line = if note.kind == "aside" then `{note.about} → {note.text}` else note.text
		if small or similarity.shared_words(line, all) < TOLD * #similarity.words(line) then
			table.insert(found, finding(self, line, note.by or "", note.iteration))
		end
	end
	return found
end

type IdeaLine = { content: string, score: number, rated: boolean, iteration: number, trace: string }

local function idea_of(self: app.App, item: Item): IdeaLine
	local line = line_of(self, item)
	local rated = list.find(entries_of(self, item), function(entry): boolean
		return entry.score ~= nil
	end)
	local score = if rated then rated.score :: number else session.UNRATED
	return { content = line.text, score = score, rated = rated ~= nil, iteration = line.iteration, trace = line.trace }
end

--- Returns how many questions were answered.
local function answers_of(self: app.App): number
	local count = 0
	for _, entry in session.counted_history(self.doc) do
		for _, response in entry.responses do
			count += if response ~= "" then 1 else 0
		end
	end
	return count
end

--- Returns everything that a template of a brief may show.
function brief_sections.of(self: app.App, document: Document): app.Vars
	local s = self.doc.session
	local own = self.doc.nietz
	local function lines(section: string): { Line }
		return list.map(document[section], function(item): Line
			return line_of(self, item)
		end)
	end
	local problem = line_of(self, document.problem[1])
	local ideas = list.map(document.ideas, function(item): IdeaLine
		return idea_of(self, item)
	end)
	table.sort(ideas, function(one: IdeaLine, other: IdeaLine): boolean
		return one.score > other.score
	end)
	return {
		l = lang.data(self.lang, "brief"),
		s = { slug = s.slug, id = s.id, ems = s.ems, iterations = session.answered(self.doc), minutes = s.duration_minutes },
		iterations = translations.counted(self.t, "brief.iterations", session.answered(self.doc)),
		topic = own.topic,
		title = begun(own.topic),
		level = self.t(`levels.{ems.level(s.ems)}`),
		date = string.sub(clock.now(), 1, 10),
		size = stories.size(document.stories),
		lead = if document.lead[1] then line_of(self, document.lead[1]).text else "",
		glance = list.map(document.glance, function(item): Line
			local line = line_of(self, item)
			line.text = cell(line.text)
			return line
		end),
		sinks = lines("sinks"),
		came_about = self.t("brief.came_about", {
			rounds = translations.counted(self.t, "brief.rounds", session.answered(self.doc)),
			answers = translations.counted(self.t, "brief.answers", answers_of(self)),
		}),
		problem = problem.text,
		origin = problem.trace,
		users = lines("users"),
		goals = lines("goals"),
		scope = lines("scope"),
		out = lines("out"),
		constraints = lines("constraints"),
		facts = lines("facts"),
		said = lines("said"),
		decisions = lines("decisions"),
		approaches = list.map(document.approaches, function(item): Line
			local line = line_of(self, item) :: any
			line.name, line.how = item.name or "", line.text
			line.price = (item.price or "") .. part_mark(self, item, item.price, item.price_from)
			line.chosen = item.standing == "chosen"
			line.recommended = item.standing ~= "open"
			return line
		end),
		stories = list.map(document.stories, function(item): StoryLine
			return story_of(self, item)
		end),
		risks = risks_of(self, document.risks),
		findings = findings_of(self, document),
		open = lines("open"),
		contested = lines("contested"),
		steps = list.map(document.steps, function(item): Line
			local line = line_of(self, item) :: any
			line.step, line.cell = line.text, cell(line.text)
			line.whose = if line.owner ~= "" or self.mind == "small" then line.owner else self.t("brief.nobody")
			return line
		end),
		ideas = ideas,
		sources = if own.about then own.about.files else {},
	}
end

--- What stands in a text: small letters, one blank between words, no marks of a table.
local function plain(value: string): string
	return ledger.plain((string.gsub(string.gsub(value, "\\|", "|"), "[%*_`]", "")))
end

--- An item that a template had no place for, with what its section is called.
export type Left = { section: string, item: Item, trace: string }

--- Returns what rests on the user's words and stands nowhere in a brief: a template of somebody's own may have no place for it.
function brief_sections.missing(self: app.App, rendered: string, document: Document): { Left }
	local told = plain(rendered)
	local found: { Left } = {}
	for _, section in brief_document.SECTIONS do
		for _, item in brief_document.below_head(document, section) do
			local bare = string.gsub(plain(item.text), "%.$", "")
			if #item.from > 0 and string.find(told, bare, 1, true) == nil then
				table.insert(found, { section = section, item = item, trace = line_of(self, item).trace })
			end
		end
	end
	return found
end

--- Returns what each item rests on, to be kept with the session.
function brief_sections.rests(document: Document): { session.Rest }
	local found: { session.Rest } = {}
	for _, section in brief_document.SECTIONS do
		for _, item in brief_document.below_head(document, section) do
			table.insert(found, { section = section, text = item.text, from = json.array(table.clone(item.from)) })
		end
	end
	return found
end

return brief_sections
