--!strict
--- What a belief is, by its words: without what people dress it in ("I think that …"), no question, and about something that other
--- words may be about, too. Without a model, so that it is certain.

local intent = require("./intent")
local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local beliefs = {}

local FILE = yaml.load("./beliefs.yaml")
local FILLER: { [string]: boolean } = {}
for _, word in FILE.filler do
	FILLER[word] = true
end

--- The shortest word that says what a sentence is about, in letters, and the fewest letters in which two words have to agree.
local SHORTEST, STEM = 3, 4
--- Words are about the same thing where so many of them, and such a part of all, stand in both.
local FEWEST, PART = 2, 0.6

--- Returns a belief without the words around it that only say that it is one.
function beliefs.bare(quote: string): string
	for _, wrapper in FILE.wrappers do
		local found = text.search(quote, `(?i){wrapper}`)
		if found ~= nil then
			local rest = string.sub(quote, found.last + 1)
			local whole = string.find(rest, "%S%s+%S") ~= nil and text.search(rest, `(?i){FILE.no_belief}`) == nil
			return if whole then rest else quote
		end
	end
	return quote
end

--- Whether these words are asked, and not claimed, in what was said: they stand in a sentence that ends with a question mark.
function beliefs.is_asked(quote: string, said: string): boolean
	if string.find(quote, "?", 1, true) ~= nil then
		return true
	end
	local words, place = intent.normalize(quote), intent.normalize(said) .. " "
	local _, last = string.find(place, words, 1, true)
	if last == nil then
		return false
	end
	-- A dot within a name ends no sentence.
	local ends = string.match(place, "([.!?;])[%s\"')]", last + 1)
	return ends == "?"
end

--- Returns the words that say what a text is about.
function beliefs.topics(value: string): { string }
	local found: { string } = {}
	for word in string.gmatch(intent.normalize(value), "[%w_'-]+") do
		if #word >= SHORTEST and not FILLER[word] and table.find(found, word) == nil then
			table.insert(found, word)
		end
	end
	return found
end

--- Whether two words agree but for their endings.
local function agree(one: string, other: string): boolean
	local letters = math.max(math.min(#one, #other) - 2, STEM)
	return one == other or #one >= STEM and #other >= STEM and string.sub(one, 1, letters) == string.sub(other, 1, letters)
end

--- Whether a text speaks of what a belief is about: most of its words stand there.
function beliefs.is_spoken_of(belief: string, said: string): boolean
	local about, there = beliefs.topics(belief), beliefs.topics(said)
	local count = 0
	for _, word in about do
		count += if list.some(there, function(other): boolean
				return agree(word, other)
			end)
			then 1
			else 0
	end
	return count >= FEWEST and count >= PART * #about
end

return beliefs
