--!strict
--- A brief: Markdown, section by section, with what its statements rest on. Where no large mind wrote it, its sections are made of
--- items with the entries of the ledger that they rest on (`brief_sections.lua`). Pure.

local ledger = require("../common/ledger")
local list = require("../common/list")

local brief_document = {}

--- One thing that a brief says. An item without `from` is its writer's own.
export type Item = {
	from: { number },
	--- What it says: the statement, the story, the risk, the step, how an approach works.
	text: string,
	--- Of a decision.
	why: string?,
	rejected: string?,
	--- Of an approach. `standing` is `chosen`, `recommended` or `open`.
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
	--- Of a risk or a step.
	owner: string?,
	date: string?,
	--- Where nothing else says it: the iteration that it comes from.
	iteration: number?,
}

export type Document = { [string]: { Item } }

--- A brief as it is shown: the Markdown of each section, and what of it rests on which entries.
export type Brief = {
	sections: { [string]: string },
	rests: { { section: string, text: string, from: { number } } },
	--- Where it is made of items: its stories.
	stories: { Item }?,
	--- Where a large mind wrote it: its parts in the order in which they are read, each with the section that it is.
	parts: { { of: string, heading: string, text: string } }?,
	--- Where its writer has told it in another language: how it came about.
	came_about: string?,
}

--- The sections of a brief that is made of items.
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
	"open",
	"contested",
	"steps",
	"ideas",
}

--- The sections of a brief that a large mind writes. What stands above all headings is the lead, and what stands below none the closing.
brief_document.WRITTEN = {
	"lead",
	"problem",
	"users",
	"goals",
	"scope",
	"constraints",
	"decisions",
	"options",
	"stories",
	"risks",
	"open",
	"steps",
	"other",
	"closing",
}

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

--- Returns all words of an item, one part a line.
function brief_document.words(item: Item): string
	local parts = { item.text }
	for _, part in { item.name or "", item.why or "", item.rejected or "", item.price or "", item.mitigation or "" } do
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

--- Returns all that a document says.
function brief_document.all_words(document: Document): string
	local parts: { string } = {}
	for _, section in brief_document.SECTIONS do
		for _, item in document[section] do
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

return brief_document
