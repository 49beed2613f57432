--!strict
--- What is wrong with a brief, and what is missing in it: everything that the user said and that holds stands in it once, in an item
--- that rests on it, with its figures and names; nothing that was taken back, and no figure that nobody said. Pure.

local brief_document = require("./brief_document")
local dates = require("../common/dates")
local figures = require("../common/figures")
local ledger = require("../common/ledger")
local list = require("../common/list")
local similarity = require("../common/similarity")
local text = require("@nietz/text")

local brief_check = {}

type Document = brief_document.Document
type Item = brief_document.Item

--- What a check goes by: what holds, all that may be cited for a figure, and the sections that the brief has.
export type Basis = { held: { ledger.Entry }, said: string, sections: { string } }

--- Something wrong with the item at a place of a section, as the writer is told.
export type Fault = { section: string, at: number, why: string }

--- How much of an entry's words an item must share that rests on it; and so much that one says it without naming it.
local CITED, UNCITED = 0.2, 0.75
--- The same for what was asked for once more: who cites it then has weighed it.
local CITED_AGAIN = 0.1
--- Items that share more of the shorter one's words say the same; fewer words prove nothing.
local SAME, FEWEST = 0.75, 3
--- How much longer one may be that says no more than another.
local LONGER = 1.3

--- The sections whose items are statements, the one that keeps a statement first.
local STATEMENTS =
	{ "sinks", "decisions", "constraints", "goals", "out", "scope", "users", "contested", "open", "risks", "steps", "facts", "ideas" }

--- Returns the words with a capital that do not begin a sentence: names, and what is written like one.
local function capitals(value: string): { string }
	local found: { string } = {}
	for _, sentence in ledger.sentences(value) do
		for index, word in string.split(sentence, " ") do
			local bare = string.match(word, "^[%(\"'“‘]*(%u[%w\128-\255%-]+)")
			if index > 1 and bare ~= nil then
				table.insert(found, bare)
			end
		end
	end
	return found
end

--- Returns the names among the words of an entry. What begins its sentence is one where another entry has it within a sentence.
local function names_in(value: string, names: { [string]: boolean }): { string }
	local found: { string } = {}
	for word in string.gmatch(value, "%u[%w\128-\255%-]+") do
		if names[word] then
			table.insert(found, word)
		end
	end
	return found
end

local function names_of(held: { ledger.Entry }): { [string]: boolean }
	local names: { [string]: boolean } = {}
	for _, entry in held do
		for _, part in { entry.text, entry.why or "", entry.rejected or "" } do
			for _, word in capitals(part) do
				names[word] = true
			end
		end
	end
	return names
end

--- Returns all that an entry says.
local function words_of(entry: ledger.Entry): string
	return brief_document.words(brief_document.item_of(entry))
end

--- Whether a text has all figures and names of another.
local function has_all(place: string, value: string, names: { [string]: boolean }): boolean
	if ledger.invented_number(value, place) ~= nil then
		return false
	end
	local folded = text.fold(place)
	return not list.some(names_in(value, names), function(name): boolean
		return string.find(folded, text.fold(name), 1, true) == nil
	end)
end

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

--- Returns what the user said, in a section that the brief has, that a document does not say. `again` is whether the writer was
--- told so before.
function brief_check.missing(document: Document, basis: Basis, again: boolean): { ledger.Entry }
	local names = names_of(basis.held)
	local all = brief_document.all_words(document)
	local cited = if again then CITED_AGAIN else CITED
	return list.filter(basis.held, function(entry): boolean
		local section = brief_document.OF_KIND[entry.kind]
		if entry.by ~= "user" or section == nil or table.find(basis.sections, section) == nil then
			return false
		elseif not brief_check.stands_alone(entry) then
			return false
		elseif not has_all(all, words_of(entry), names) then
			return true
		end
		local least = #similarity.words(entry.text)
		for place, items in document do
			if table.find(brief_document.HEAD, place) ~= nil then
				continue
			end
			local looked_for = place == section or place == "problem"
			for _, item in items do
				local share = similarity.shared_words(entry.text, brief_document.words(item)) / math.max(1, least)
				if (looked_for and share >= UNCITED) or (table.find(item.from, entry.id) ~= nil and share >= cited) then
					return false
				end
			end
		end
		return true
	end)
end

type Statement = { section: string, at: number, item: Item, words: string, stems: similarity.Stems }

local function statements(document: Document): { Statement }
	local found: { Statement } = {}
	for _, section in STATEMENTS do
		for at, item in document[section] do
			local stems = similarity.stems(`{item.text} {item.why or ""}`)
			table.insert(found, { section = section, at = at, item = item, words = brief_document.words(item), stems = stems })
		end
	end
	return found
end

--- Whether two sections are about the same kind of thing: what is to be done about an open question is no second telling of it.
local function comparable(one: string, other: string): boolean
	local apart = one == "steps" or other == "steps" or one == "risks" or other == "risks"
	return one == other or not apart or (one == "sinks" and other == "risks")
end

--- Calls `seen` with each statement that says what another one says, which comes first by its section.
local function each_double(document: Document, seen: (one: Statement, other: Statement) -> ())
	local all = statements(document)
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

--- Whether the problem says all that a fact says.
local function in_problem(document: Document, item: Item, names: { [string]: boolean }): boolean
	local problem = document.problem[1]
	if problem == nil or #similarity.words(item.text) < FEWEST then
		return false
	end
	local words = brief_document.words(problem)
	return similarity.echoes(item.text, { words }) and has_all(words, item.text, names)
end

--- Returns what may be cited within these words: what was said, what a calculation that is written out in them comes to
--- (`410 × 11% ≈ 45`, `525 a month (3,150 ÷ 6)`), and days that are counted from one that was said.
local function with_results(words: string, said: string): string
	local known = said
	for _, figure in figures.worked_out(words, figures.of(said)) do
		known ..= `\n{figure.written}`
	end
	for _, day in dates.counted(words, said) do
		known ..= `\n{day}`
	end
	return known
end

--- Returns a basis on which a document may cite, too, what a calculation of its own comes to, wherever that stands.
local function with_sums(document: Document, basis: Basis): Basis
	local all = { brief_document.all_words(document) }
	for _, section in brief_document.HEAD do
		for _, item in document[section] do
			table.insert(all, brief_document.words(item))
		end
	end
	local more = table.clone(basis)
	more.said = with_results(table.concat(all, "\n"), basis.said)
	return more
end

--- Returns the figure that words have and nobody said, or nil.
local function invented_in(words: string, basis: Basis): string?
	-- Nearly all words are said: what a text may work out is looked at only where they are not.
	return if ledger.invented_number(words, basis.said) == nil then nil else ledger.invented_number(words, with_results(words, basis.said))
end

--- Returns the figure that an item has and nobody said, or nil.
local function invented(item: Item, basis: Basis): string?
	return invented_in(brief_document.words(item), basis)
end

local function holds(basis: Basis, ids: { number }): { number }
	return list.filter(ids, function(id): boolean
		return list.some(basis.held, function(entry): boolean
			return entry.id == id
		end)
	end)
end

--- Returns what is wrong with the items of a document, in the words in which its writer is told.
function brief_check.faults(document: Document, known: Basis): { Fault }
	local found: { Fault } = {}
	local basis = with_sums(document, known)
	local names = names_of(basis.held)
	local function add(section: string, at: number, why: string)
		table.insert(found, { section = section, at = at, why = why })
	end
	for _, section in basis.sections do
		for at, item in document[section] do
			local figure = invented(item, basis)
			if figure ~= nil then
				add(section, at, `"{figure}" is in nothing that holds, and no calculation beside it gives it`)
			elseif #item.from > 0 and #holds(basis, item.from) == 0 then
				add(section, at, "it rests on nothing that holds")
			elseif section == "facts" and in_problem(document, item, names) then
				add(section, at, "the problem says it already")
			end
		end
	end
	each_double(document, function(one, other)
		add(other.section, other.at, `{one.section} {one.at} says it already`)
	end)
	return found
end

--- Returns a document in which nothing is told twice. Of two items that say the same, the one stays that says more, or whose section
--- is looked at first; a figure or a name never goes with the other.
function brief_check.drop_doubles(document: Document, basis: Basis): Document
	local names = names_of(basis.held)
	local gone: { [Item]: boolean } = {}
	each_double(document, function(one, other)
		local shorter = #other.stems.list <= #one.stems.list * LONGER
		if not gone[one.item] and shorter and has_all(one.words, other.words, names) then
			gone[other.item] = true
			table.move(other.item.from, 1, #other.item.from, #one.item.from + 1, one.item.from)
		end
	end)
	local made = brief_document.empty()
	for _, section in basis.sections do
		made[section] = list.filter(document[section], function(item): boolean
			return not gone[item] and not (section == "facts" and in_problem(document, item, names))
		end)
	end
	return made
end

--- What stands between the names of several owners.
local BETWEEN_NAMES = { " and ", " et ", " with ", " avec ", " & ", "/", ";" }

--- Whether somebody of these was named by nobody.
local function is_unnamed(owners: string, said: string): boolean
	local parted = owners
	for _, sign in BETWEEN_NAMES do
		parted = string.gsub(parted, sign, ",")
	end
	return list.some(string.split(parted, ","), function(one): boolean
		local name = text.trim(one)
		return name ~= "" and not ledger.is_said(name, said)
	end)
end

--- Returns an item without the parts that have a figure which nobody said, or nil where nothing is left of its statement, or where
--- it rests on nothing that holds.
local function cleaned(raw: Item, basis: Basis): Item?
	local item = table.clone(raw)
	local function known(part: string): boolean
		return invented_in(part, basis) == nil
	end
	local function kept(part: string?): string?
		return if part ~= nil and not known(part) then "" else part
	end
	local function holding(ids: { number }?): { number }?
		return if ids ~= nil then holds(basis, ids) else nil
	end
	if not known(item.text) then
		-- Only the sentences go that have a figure without a source.
		item.text = table.concat(list.filter(ledger.sentences(item.text), known), " ")
	end
	item.from = holds(basis, raw.from)
	item.criteria = if item.criteria then list.filter(item.criteria, known) else nil
	item.mitigation, item.mitigation_from = kept(item.mitigation), holding(item.mitigation_from)
	item.price, item.price_from = kept(item.price), holding(item.price_from)
	item.date, item.rule, item.default, item.why = kept(item.date), kept(item.rule), kept(item.default), kept(item.why)
	local owner = item.owner or ""
	item.unnamed = if owner ~= "" and is_unnamed(owner, basis.said) then true else nil
	local rests = #raw.from == 0 or #item.from > 0
	return if rests and item.text ~= "" and invented(item, basis) == nil then item else nil
end

--- Returns a document without what nobody said and what holds no more, and with nothing told twice.
function brief_check.clean(document: Document, known: Basis): Document
	local made = brief_document.empty()
	local basis = with_sums(document, known)
	for _, section in basis.sections do
		for _, raw in document[section] do
			local item = cleaned(raw, basis)
			if item ~= nil then
				table.insert(made[section], item)
			end
		end
	end
	return brief_check.drop_doubles(made, basis)
end

--- Puts what a writer has told nowhere where it belongs: facts that are only the user's words stand together, as their words.
function brief_check.place_untold(document: Document, entries: { ledger.Entry })
	for _, entry in entries do
		local item = brief_document.item_of(entry)
		local is_word_for_word = entry.kind == "fact" and entry.quote == nil
		item.text = if is_word_for_word then `“{item.text}”` else item.text
		table.insert(document[if is_word_for_word then brief_document.SAID else brief_document.OF_KIND[entry.kind]], item)
	end
end

--- Puts entries into their sections, in their own words.
function brief_check.place(document: Document, entries: { ledger.Entry })
	for _, entry in entries do
		table.insert(document[brief_document.OF_KIND[entry.kind]], brief_document.item_of(entry))
	end
end

return brief_check
