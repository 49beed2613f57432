--!strict
--- What of the figures and names of words stands in another text. Pure.

local figures = require("./figures")
local ledger = require("./ledger")
local list = require("./list")
local memo = require("./memo")
local text = require("@nietz/text")

local presence = {}

--- What is written like a name and is a unit, for which there may be a sign.
local UNITS = { "EUR", "USD", "GBP", "CHF" }

--- Returns a text in which dates have no month in figures: it may be told as a word.
function presence.without_months(value: string): string
	local plain = string.gsub(value, "(%d%d%d%d)%-%d%d%-0?(%d+)", "%2 %1")
	return (string.gsub(plain, "0?(%d+)/%d%d?/(%d%d%d%d)", "%1 %2"))
end

--- Returns a text without the marks beyond ASCII that are no letters: quotes, dashes, dots.
local function bare(value: string): string
	return (string.gsub(string.gsub(value, "\226[\128-\135][\128-\191]", " "), "\194[\128-\191]", " "))
end

--- The words of a text with a capital: what is written like a name.
local CAPITAL = "%u[%w\128-\255%-]+"

--- Returns the words with a capital that do not begin a sentence, and how many words there are in all.
local function capitals(value: string): ({ string }, number)
	local found: { string } = {}
	local count = 0
	for _, sentence in ledger.sentences(bare(value)) do
		for index, word in string.split(sentence, " ") do
			local name = string.match(word, `^[%("']*({CAPITAL})`)
			if index > 1 and name ~= nil and table.find(UNITS, name) == nil then
				table.insert(found, name)
			end
			count += 1
		end
	end
	return found, count
end

--- In a language that writes each noun with a capital, as German does, more than this share of all words have one, from so many words on.
local NOUNS, LEAST_WORDS = 0.18, 30

--- Returns the names that stand in these texts: what has a capital where no sentence begins. Where each noun has one, what is written with
--- several, as an abbreviation.
function presence.names_of(texts: { string }): { [string]: boolean }
	local all: { string } = {}
	local words = 0
	for _, one in texts do
		local found, count = capitals(one)
		table.move(found, 1, #found, #all + 1, all)
		words += count
	end
	local are_nouns = words >= LEAST_WORDS and #all > NOUNS * words
	local names: { [string]: boolean } = {}
	for _, word in all do
		if not are_nouns or string.find(word, "%u.*%u") ~= nil then
			names[word] = true
		end
	end
	return names
end

--- A place in which words are looked for, as they are looked for.
type Place = { plain: string, figures: { figures.Figure }, folded: string }

--- Returns a place; the last one is kept, because one document is asked for many words in a row.
local place_of = memo.of(1, function(value): Place
	local plain = presence.without_months(value)
	return { plain = plain, figures = figures.of(plain), folded = text.fold(value) }
end)

--- Returns the figures and names of words that a place does not have. What begins a sentence is a name where it is one elsewhere.
function presence.lacking(words: string, place: string, names: { [string]: boolean }): { string }
	local found: { string } = {}
	local there = place_of(place)
	for _, figure in figures.of(presence.without_months(words)) do
		local is_there = list.some(there.figures, function(other): boolean
			return other.value == figure.value
		end)
		if not is_there and ledger.invented_number(figure.written, there.plain) ~= nil then
			table.insert(found, figure.written)
		end
	end
	for word in string.gmatch(bare(words), CAPITAL) do
		if names[word] and string.find(there.folded, text.fold(word), 1, true) == nil and table.find(found, word) == nil then
			table.insert(found, word)
		end
	end
	return found
end

return presence
