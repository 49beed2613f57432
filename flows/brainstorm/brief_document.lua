--!strict
--- A brief as a document: its sections, and in each its items with the entries of the ledger that they rest on. Whatever writes one
--- (a large mind, the calls of a small one, the host) writes this; `brief_sections.lua` shows it. Pure.

local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local shape = require("../common/shape")

local brief_document = {}

--- One thing that a brief says. An item without `from` is its writer's own.
export type Item = {
	from: { number },
	--- What it says: the statement, the story, the risk, the step, how an approach works.
	text: string,
	--- Of a decision; of an open question, what hangs on it.
	why: string?,
	rejected: string?,
	--- Of an open question: which answer leads to what, and what holds until then.
	rule: string?,
	default: string?,
	--- Of an approach, and of a row of the table at the top, whose label it is. `standing` is `chosen`, `recommended` or `open`.
	name: string?,
	price: string?,
	standing: string?,
	--- Of a story.
	criteria: { string }?,
	priority: string?,
	effort: string?,
	--- Of a risk: 1 to 3 each.
	probability: number?,
	impact: number?,
	mitigation: string?,
	--- The entries on which the mitigation, or the price, rests: where there are none it is the writer's own.
	mitigation_from: { number }?,
	price_from: { number }?,
	--- Of a risk, a step or an open question. `unnamed`: nobody named this owner.
	owner: string?,
	unnamed: boolean?,
	date: string?,
	--- Where nothing else says it: the iteration that it comes from.
	iteration: number?,
}

export type Document = { [string]: { Item } }

--- The sections, in the order in which a writer thinks of them: what is read first is written last.
brief_document.SECTIONS = {
	"problem",
	"users",
	"goals",
	"scope",
	"out",
	"constraints",
	"decisions",
	"approaches",
	"stories",
	"facts",
	"risks",
	"sinks",
	"open",
	"contested",
	"steps",
	"ideas",
	"lead",
	"glance",
	"said",
}

--- The section that no writer writes: what nobody told, in the user's words.
brief_document.SAID = "said"

--- The sections at the top: what they say stands below them as well.
brief_document.HEAD = { "lead", "glance" }

--- In which section an entry is looked for, by its kind.
brief_document.OF_KIND = {
	fact = "facts",
	constraint = "constraints",
	goal = "goals",
	user = "users",
	scope = "scope",
	out = "out",
	decision = "decisions",
	idea = "ideas",
	risk = "risks",
	step = "steps",
	open = "open",
	contested = "contested",
} :: { [string]: string }

--- Returns a document with nothing in it.
function brief_document.empty(): Document
	local made: Document = {}
	for _, section in brief_document.SECTIONS do
		made[section] = {}
	end
	return made
end

--- Returns a document as its writer wrote it.
function brief_document.encode(document: Document, sections: { string }): string
	local found: { [string]: { Item } } = {}
	for _, section in sections do
		local items = json.array({} :: { Item })
		for _, item in document[section] do
			local one = table.clone(item)
			one.from = json.array(table.clone(item.from))
			one.mitigation_from = if item.mitigation_from then json.array(table.clone(item.mitigation_from)) else nil
			one.price_from = if item.price_from then json.array(table.clone(item.price_from)) else nil
			table.insert(items, one)
		end
		found[section] = items
	end
	return json.encode(found)
end

--- Returns all words of an item, one part a line.
function brief_document.words(item: Item): string
	local parts = { item.text }
	for _, part in { item.name or "", item.why or "", item.rejected or "", item.price or "", item.mitigation or "" } do
		table.insert(parts, part)
	end
	for _, part in { item.rule or "", item.default or "" } do
		table.insert(parts, part)
	end
	for _, part in { item.owner or "", item.date or "" } do
		table.insert(parts, part)
	end
	for _, line in item.criteria or {} :: { string } do
		table.insert(parts, line)
	end
	return table.concat(
		list.filter(parts, function(part): boolean
			return part ~= ""
		end),
		"\n"
	)
end

--- Returns the items of a section; none where it is of the head.
function brief_document.below_head(document: Document, section: string): { Item }
	local none: { Item } = {}
	return if table.find(brief_document.HEAD, section) == nil then document[section] else none
end

--- Returns all that a document says below its head.
function brief_document.all_words(document: Document): string
	local parts: { string } = {}
	for _, section in brief_document.SECTIONS do
		for _, item in brief_document.below_head(document, section) do
			table.insert(parts, brief_document.words(item))
		end
	end
	return table.concat(parts, "\n")
end

--- Returns an entry as an item, in its own words.
function brief_document.item_of(entry: ledger.Entry): Item
	return {
		from = { entry.id },
		text = entry.text,
		why = entry.why,
		rejected = entry.rejected,
		owner = entry.owner,
		date = entry.date,
		iteration = entry.turn,
	}
end

local LINE: shape.Shape = shape.text(1)
local PERHAPS: shape.Shape = { type = "string" }
local IDS: shape.Shape = shape.list({ type = "integer" })

--- What the items of a section have beside `from` and `text`, in the order in which it is thought of.
local MEMBERS: { [string]: { { name: string, of: shape.Shape } } } = {
	decisions = { { name = "why", of = PERHAPS }, { name = "rejected", of = PERHAPS } },
	approaches = {
		{ name = "name", of = LINE },
		{ name = "price", of = LINE },
		{ name = "price_from", of = IDS },
		{ name = "standing", of = { enum = { "chosen", "recommended", "open" } } },
	},
	stories = {
		{ name = "criteria", of = shape.list(LINE, 1, 4) },
		{ name = "effort", of = { enum = { "S", "M", "L" } } },
		{ name = "priority", of = { enum = { "must", "should", "could" } } },
	},
	risks = {
		{ name = "probability", of = shape.integer(1, 3) },
		{ name = "impact", of = shape.integer(1, 3) },
		{ name = "mitigation", of = LINE },
		{ name = "mitigation_from", of = IDS },
		{ name = "owner", of = PERHAPS },
	},
	open = {
		{ name = "why", of = PERHAPS },
		{ name = "rule", of = PERHAPS },
		{ name = "default", of = PERHAPS },
		{ name = "owner", of = PERHAPS },
		{ name = "date", of = PERHAPS },
	},
	glance = { { name = "name", of = LINE } },
	steps = { { name = "owner", of = PERHAPS }, { name = "date", of = PERHAPS } },
}

--- The sections whose number of items is held: the least, and the most.
local COUNTS: { [string]: { number } } = { problem = { 1, 1 }, lead = { 1, 1 }, glance = { 0, 6 }, sinks = { 0, 3 } }

--- Returns the shape of a section's items; with `at`, the place of the item that each replaces.
local function item_shape(section: string, with_place: boolean): shape.Shape
	local names = { "from", "text" }
	local members: { [string]: shape.Shape } = { from = IDS, text = LINE }
	if with_place then
		table.insert(names, 1, "at")
		members.at = { type = "integer", minimum = 0 }
	end
	for _, member in MEMBERS[section] or {} :: { { name: string, of: shape.Shape } } do
		table.insert(names, member.name)
		members[member.name] = member.of
	end
	return shape.object(names, members)
end

--- Returns the shape of a document with these sections.
function brief_document.shape_of(sections: { string }): shape.Shape
	local members: { [string]: shape.Shape } = {}
	for _, section in sections do
		local count = COUNTS[section]
		local item = item_shape(section, false)
		members[section] = if count ~= nil then shape.list(item, count[1], count[2]) else shape.list(item)
	end
	return shape.object(sections, members)
end

--- Returns the shape of changes to a document: what is left out, and what is replaced or added, section by section.
function brief_document.changes_shape(sections: { string }): shape.Shape
	local names = { "remove" }
	local members: { [string]: shape.Shape } = {
		remove = shape.list(shape.object({ "section", "at" }, { section = { enum = sections }, at = { type = "integer", minimum = 1 } })),
	}
	for _, section in sections do
		table.insert(names, section)
		members[section] = shape.list(item_shape(section, true))
	end
	return shape.object(names, members)
end

--- An item of a change: `at` is the place of the one that it replaces, 0 for a new one.
type Placed = Item & { at: number }

--- Returns a document with changes made to it. What names a place that is not there is added.
function brief_document.change(document: Document, changes: any): Document
	local made = brief_document.empty()
	local removed: { [string]: boolean } = {}
	for _, one in changes.remove :: { { section: string, at: number } } do
		removed[`{one.section} {one.at}`] = true
	end
	for section, items in document do
		local placed: { [number]: Item } = {}
		local added: { Item } = {}
		for _, raw in (changes[section] or {}) :: { Placed } do
			local item = table.clone(raw) :: any
			item.at = nil
			if raw.at >= 1 and raw.at <= #items and placed[raw.at] == nil then
				placed[raw.at] = item
			else
				table.insert(added, item)
			end
		end
		for at, item in items do
			if placed[at] ~= nil then
				table.insert(made[section], placed[at])
			elseif not removed[`{section} {at}`] then
				table.insert(made[section], item)
			end
		end
		table.move(added, 1, #added, #made[section] + 1, made[section])
	end
	return made
end

return brief_document
