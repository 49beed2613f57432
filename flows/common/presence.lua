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

--- Returns the words with a capital that do not begin a sentence: names, and what is written like one.
local function capitals(value: string): { string }
	local found: { string } = {}
	for _, sentence in ledger.sentences(value) do
		for index, word in string.split(sentence, " ") do
			local bare = string.match(word, "^[%(\"'“‘]*(%u[%w\128-\255%-]+)")
			if index > 1 and bare ~= nil and table.find(UNITS, bare) == nil then
				table.insert(found, bare)
			end
		end
	end
	return found
end

--- Returns the names that stand in these texts.
function presence.names_of(texts: { string }): { [string]: boolean }
	local names: { [string]: boolean } = {}
	for _, one in texts do
		for _, word in capitals(one) do
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
	for word in string.gmatch(words, "%u[%w\128-\255%-]+") do
		if names[word] and string.find(there.folded, text.fold(word), 1, true) == nil and table.find(found, word) == nil then
			table.insert(found, word)
		end
	end
	return found
end

return presence
