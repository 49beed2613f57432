--!strict
--- A brief as templates get it: the Markdown of each section, with what stands beside it. Where no large mind wrote it, the Markdown
--- is made of its items.

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
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")

local brief_sections = {}

type Item = brief_document.Item
type Brief = brief_document.Brief

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

--- An item as a template shows it. `bare` is its text where a reason follows, so that the sentence does not end there.
type Line = { name: string, text: string, bare: string, why: string, rejected: string, owner: string, date: string }

local function without_stop(value: string?): string
	return (string.gsub(value or "", "%.$", ""))
end

local function line_of(item: Item): Line
	local reasoned = (item.why or "") ~= "" or (item.rejected or "") ~= ""
	return {
		name = item.name or "",
		text = (string.gsub(item.text, "\n", " ")),
		bare = if reasoned then without_stop(item.text) else item.text,
		why = without_stop(item.why),
		rejected = without_stop(item.rejected),
		owner = item.owner or "",
		date = item.date or "",
	}
end

type StoryLine = Line & { takes: string, weight: string, criteria: { string } }

local function story_of(self: app.App, item: Item): StoryLine
	local line = line_of(item) :: any
	line.takes = if item.effort ~= nil then self.t(`brief.takes.{item.effort}`) else ""
	line.weight = if item.priority ~= nil then self.t(`brief.weights.{item.priority}`) else ""
	line.criteria = item.criteria or {}
	return line
end

type RiskLine = Line & { risk: string, mitigation: string, high: boolean, order: number }

--- Returns the risks, those first that nobody has weighed, then the heaviest.
local function risks_of(items: { Item }): { RiskLine }
	local found: { RiskLine } = {}
	for index, item in items do
		local line = line_of(item) :: any
		local weight = (item.probability or 0) * (item.impact or 0)
		line.risk, line.mitigation = cell(item.text), cell(item.mitigation)
		line.high = weight >= assessments.MITIGATE
		line.order = (if weight > 0 then 10 - weight else 0) * 1000 + index
		table.insert(found, line)
	end
	table.sort(found, function(one: RiskLine, other: RiskLine): boolean
		return one.order < other.order
	end)
	return found
end

--- How much of a note must stand in a brief for it to be told there.
local TOLD = 0.6

--- Returns what was found beside the questions and stands nowhere else: of a large mind's brief, what its writer did not take up.
local function findings_of(self: app.App, brief: Brief): { { text: string, by: string } }
	local found: { { text: string, by: string } } = {}
	local small = self.mind == "small"
	if small then
		for _, entry in notebook.holding(self.doc, { "finding" }) do
			table.insert(found, { text = entry.text, by = entry.by })
		end
	end
	local all = ""
	for _, markdown in brief.sections do
		all ..= `\n{markdown}`
	end
	local kinds = { "security", "spike", "lookups", "rivals" }
	if small then
		table.insert(kinds, "aside")
	end
	for _, note in session.notes(self.doc, kinds) do
		local line = if note.kind == "aside" then `{note.about} → {note.text}` else note.text
		if small or similarity.shared_words(line, all) < TOLD * #similarity.words(line) then
			table.insert(found, { text = line, by = note.by or "" })
		end
	end
	return found
end

type IdeaLine = { content: string, score: number, rated: boolean }

local function idea_of(self: app.App, item: Item): IdeaLine
	local rated = list.find(entries_of(self, item), function(entry): boolean
		return entry.score ~= nil
	end)
	local score = if rated then rated.score :: number else session.UNRATED
	return { content = line_of(item).text, score = score, rated = rated ~= nil }
end

local function ideas_of(self: app.App, items: { Item }): { IdeaLine }
	local ideas = list.map(items, function(item): IdeaLine
		return idea_of(self, item)
	end)
	table.sort(ideas, function(one: IdeaLine, other: IdeaLine): boolean
		return one.score > other.score
	end)
	return ideas
end

--- Returns the brief that items make: the Markdown of each section by its template.
function brief_sections.of_items(self: app.App, document: brief_document.Document): Brief
	local function rendered(part: string, vars: app.Vars): string
		vars.l, vars.tasks = lang.data(self.lang, "brief"), self.options.format == "issue"
		return text.trim(template.render(`./screens/brief/parts/{part}.md`, vars))
	end
	local function listed(section: string): string
		return rendered("list", { items = list.map(document[section], line_of) })
	end
	local sections: { [string]: string } = {
		problem = line_of(document.problem[1]).text,
		users = listed("users"),
		goals = listed("goals"),
		constraints = listed("constraints"),
		facts = listed("facts"),
		scope = rendered("scope", { scope = list.map(document.scope, line_of), out = list.map(document.out, line_of) }),
		decisions = rendered("decisions", { decisions = list.map(document.decisions, line_of) }),
		options = rendered("options", {
			options = list.map(document.approaches, function(item): Line
				local line = line_of(item) :: any
				line.price = item.price or ""
				line.chosen = item.standing == "chosen"
				line.recommended = item.standing ~= "open"
				return line
			end),
		}),
		stories = rendered("stories", {
			stories = list.map(document.stories, function(item): StoryLine
				return story_of(self, item)
			end),
		}),
		risks = if #document.risks > 0 then rendered("risks", { risks = risks_of(document.risks) }) else "",
		open = rendered("open", { open = list.map(document.open, line_of), contested = list.map(document.contested, line_of) }),
		steps = if #document.steps > 0
			then rendered("steps", {
				steps = list.map(document.steps, function(item): Line
					local line = line_of(item) :: any
					line.cell = cell(item.text)
					line.whose = if line.owner ~= "" or self.mind == "small" then line.owner else self.t("brief.nobody")
					return line
				end),
			})
			else "",
		ideas = rendered("ideas", { ideas = ideas_of(self, document.ideas) }),
	}
	local rests: { session.Rest } = {}
	for _, section in brief_document.SECTIONS do
		for _, item in document[section] do
			table.insert(rests, { section = section, text = item.text, from = table.clone(item.from) })
		end
	end
	return { sections = sections, rests = rests, stories = document.stories }
end

--- Returns a subject as a title: it begins with a capital letter, and may be longer than its first sentence.
local function title_of(topic: string): string
	return (string.gsub(topic, "^%l", string.upper))
end

--- Returns how a brief came about, in one line.
function brief_sections.came_about(self: app.App): string
	return self.t("brief.came_about", {
		rounds = translations.counted(self.t, "brief.rounds", session.answered(self.doc)),
		answers = translations.counted(self.t, "brief.answers", session.answers(self.doc)),
	})
end

--- Returns everything that a template of a brief may show.
function brief_sections.of(self: app.App, brief: Brief): app.Vars
	local s = self.doc.session
	local own = self.doc.nietz
	local labels: { [string]: any } = table.clone(lang.data(self.lang, "brief"))
	local parts: { { heading: string, text: string } } = {}
	local named: { [string]: boolean } = {}
	for _, part in brief.parts or {} :: { { of: string, heading: string, text: string } } do
		if not named[part.of] then
			labels[if part.of == "steps" then "next" else part.of] = part.heading
			named[part.of] = true
		end
		if part.text ~= "" then
			table.insert(parts, { heading = part.heading, text = part.text })
		end
	end
	local vars: app.Vars = {
		l = labels,
		s = { slug = s.slug, id = s.id, ems = s.ems, iterations = session.answered(self.doc), minutes = s.duration_minutes },
		topic = own.topic,
		title = brief.sections.title or title_of(own.topic),
		level = self.t(`levels.{ems.level(s.ems)}`),
		date = string.sub(clock.now(), 1, 10),
		came_about = brief.came_about or brief_sections.came_about(self),
		findings = findings_of(self, brief),
		sources = if own.about then own.about.files else {},
		parts = parts,
	}
	for _, names in { brief_document.WRITTEN, { "facts", "ideas" } } do
		for _, name in names do
			vars[name] = brief.sections[name] or ""
		end
	end
	return vars
end

--- Items that stand in the section of others.
local IN_SECTION: { [string]: string } = { out = "scope", contested = "open", approaches = "options" }

--- Returns Markdown as it is compared: small letters, one blank between words.
local function plain(value: string): string
	return ledger.plain((string.gsub(value, "[%*_`]", "")))
end

--- Returns the sections that rest on the user's words and stand nowhere in a brief: a template of somebody's own may have no place
--- for them.
function brief_sections.missing(rendered: string, brief: Brief): { { section: string, text: string } }
	local told = plain(rendered)
	local found: { { section: string, text: string } } = {}
	local function look(name: string, markdown: string)
		local rests = list.some(brief.rests, function(rest): boolean
			local section = IN_SECTION[rest.section] or rest.section
			return section == name and #rest.from > 0
		end)
		if rests and markdown ~= "" and string.find(told, plain(markdown), 1, true) == nil then
			table.insert(found, { section = name, text = markdown })
		end
	end
	for _, names in { brief_document.WRITTEN, { "facts", "ideas" } } do
		for _, name in names do
			local own = list.filter(brief.parts or {}, function(part): boolean
				return part.of == name
			end)
			-- A template may show several parts of a section each by itself.
			for _, part in own do
				look(name, part.text)
			end
			if #own == 0 then
				look(name, brief.sections[name] or "")
			end
		end
	end
	return found
end

--- Returns what each statement rests on, to be kept with the session.
function brief_sections.rests(brief: Brief): { session.Rest }
	return list.map(brief.rests, function(rest): session.Rest
		return { section = rest.section, text = rest.text, from = json.array(table.clone(rest.from)) }
	end)
end

return brief_sections
