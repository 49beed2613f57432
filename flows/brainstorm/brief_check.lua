--!strict
--- What is looked at where a brief is made of items, and in what words entries can be told: an item is there once, and an entry that
--- nobody put in better words is told where it can be read alone. Pure.

local brief_document = require("./brief_document")
local ledger = require("../common/ledger")
local list = require("../common/list")
local presence = require("../common/presence")
local similarity = require("../common/similarity")

local brief_check = {}

type Document = brief_document.Document
type Item = brief_document.Item

--- Items that share more of the shorter one's words say the same; fewer words prove nothing.
local SAME, FEWEST = 0.75, 3
--- How much longer one may be that says no more than another.
local LONGER = 1.3

--- The sections whose items are statements, the one that keeps a statement first.
local STATEMENTS = { "decisions", "constraints", "goals", "out", "scope", "users", "contested", "open", "risks", "steps", "facts", "ideas" }

--- Whether an entry can be read without what it answers: it is no question with its answer behind it, and no word or two.
function brief_check.stands_alone(entry: ledger.Entry): boolean
	if entry.kind ~= "open" and entry.kind ~= "contested" then
		local sentences = ledger.sentences(entry.text)
		if #sentences == 0 or string.find(sentences[1], "%?$") ~= nil then
			return false
		end
	end
	-- A sentence that nobody put in better words is a fact; what somebody named a decision or an idea is one, however short.
	local least = if entry.kind == "fact" then 2 else 1
	return #similarity.words(entry.text) >= least or string.find(entry.text, "%d") ~= nil
end

--- Whether an entry says anything where nobody can put it in better words: a figure, or more than a word. Of an answer that stands
--- behind its question, the answer is looked at.
function brief_check.says_something(entry: ledger.Entry): boolean
	local words = if brief_check.stands_alone(entry) then entry.text else entry.quote or entry.text
	return #similarity.words(words) >= 2 or string.find(words, "%d") ~= nil
end

type Statement = { section: string, at: number, item: Item, words: string, stems: similarity.Stems }

local function statements(made: Document): { Statement }
	local found: { Statement } = {}
	for _, section in STATEMENTS do
		for at, item in made[section] do
			local stems = similarity.stems(`{item.text} {item.why or ""}`)
			table.insert(found, { section = section, at = at, item = item, words = brief_document.words(item), stems = stems })
		end
	end
	return found
end

--- Whether two sections are about the same kind of thing: what is to be done about an open question is no second telling of it.
local function comparable(one: string, other: string): boolean
	local apart = one == "steps" or other == "steps" or one == "risks" or other == "risks"
	return one == other or not apart
end

--- Calls `seen` with each statement that says what another one says, which comes first by its section.
local function each_double(made: Document, seen: (one: Statement, other: Statement) -> ())
	local all = statements(made)
	for index, other in all do
		for before = 1, index - 1 do
			local one = all[before]
			local shortest = math.min(#one.stems.list, #other.stems.list)
			if shortest >= FEWEST and comparable(one.section, other.section) and similarity.of_stems(one.stems, other.stems) > SAME then
				seen(one, other)
			end
		end
	end
end

--- Whether a text has all figures and names of another.
local function has_all(place: string, value: string, names: { [string]: boolean }): boolean
	return #presence.lacking(value, place, names) == 0
end

--- Whether the problem says all that a fact says.
local function in_problem(made: Document, item: Item, names: { [string]: boolean }): boolean
	local problem = made.problem[1]
	if problem == nil or #similarity.words(item.text) < FEWEST then
		return false
	end
	local words = brief_document.words(problem)
	return similarity.echoes(item.text, { words }) and has_all(words, item.text, names)
end

--- Returns the names that stand in entries.
local function names_of(held: { ledger.Entry }): { [string]: boolean }
	return presence.names_of(list.map(held, function(entry): string
		return brief_document.words(brief_document.item_of(entry))
	end))
end

--- Returns a document in which nothing is told twice. Of two items that say the same, the one stays that says more, or whose section
--- is looked at first; a figure or a name never goes with the other.
function brief_check.drop_doubles(made: Document, held: { ledger.Entry }): Document
	local names = names_of(held)
	local gone: { [Item]: boolean } = {}
	each_double(made, function(one, other)
		local shorter = #other.stems.list <= #one.stems.list * LONGER
		if not gone[one.item] and shorter and has_all(one.words, other.words, names) then
			gone[other.item] = true
			table.move(other.item.from, 1, #other.item.from, #one.item.from + 1, one.item.from)
		end
	end)
	local kept = brief_document.empty()
	for _, section in brief_document.SECTIONS do
		kept[section] = list.filter(made[section], function(item): boolean
			return not gone[item] and not (section == "facts" and in_problem(made, item, names))
		end)
	end
	return kept
end

--- Puts entries into their sections, in their own words.
function brief_check.place(made: Document, entries: { ledger.Entry })
	for _, entry in entries do
		table.insert(made[brief_document.OF_KIND[entry.kind]], brief_document.item_of(entry))
	end
end

return brief_check
