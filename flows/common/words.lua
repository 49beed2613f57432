--!strict
--- Words as things to compare: which a text is made of, and how much two texts share.
--- Everything that judges a model's text without a model (repeats, evidence, traces) stands on this.

local list = require("./list")
local text = require("@nietz/text")

local words = {}

--- Words this short carry no meaning of their own ("the", "avec" and so on are in `EMPTY`).
local SHORTEST = 3

local EMPTY: { [string]: boolean } = {}
for _, word in
	string.split(
		"the and for with that this from what which who how are was will would should could can not but you your our "
			.. "its have has had does did any all about into than then them they there their when where why use using "
			.. "les des une aux dans pour par avec sur sans que qui quoi dont est sont sera serait doit peut pas plus "
			.. "nous vous ils elles leur leurs son ses cette ces quel quelle quels quelles comment quand faut être avoir",
		" "
	)
do
	EMPTY[text.fold(word)] = true
end

--- Returns the meaningful words of a text, folded, each once, in order.
function words.of(value: string): { string }
	local found: { string } = {}
	local seen: { [string]: boolean } = {}
	-- Dashes, dots, quotes and arrows beyond ASCII are no letters.
	local plain = string.gsub(string.gsub(text.fold(value), "\226[\128-\135][\128-\191]", " "), "\194[\128-\191]", " ")
	for word in string.gmatch(plain, "[%w\128-\255]+") do
		if #word >= SHORTEST and not EMPTY[word] and not seen[word] then
			seen[word] = true
			table.insert(found, word)
		end
	end
	return found
end

--- A text made ready for many comparisons: the first five letters of each of its words, so that a plural or another
--- ending still counts.
export type Stems = { plain: string, list: { string }, set: { [string]: boolean } }

--- Returns the stems of a text.
function words.stems(value: string): Stems
	local list: { string } = {}
	local set: { [string]: boolean } = {}
	for _, word in words.of(value) do
		local stem = string.sub(word, 1, 5)
		table.insert(list, stem)
		set[stem] = true
	end
	return { plain = text.fold(text.trim(value)), list = list, set = set }
end

local function common(list: { string }, set: { [string]: boolean }): number
	local count = 0
	for _, stem in list do
		count += if set[stem] then 1 else 0
	end
	return count
end

--- Returns how many words `value` shares with `other`.
function words.shared(value: string, other: string): number
	return common(words.stems(value).list, words.stems(other).set)
end

--- Returns from 0 to 1 how much of the shorter text stands in the other one.
function words.alike(one: Stems, other: Stems): number
	local shorter = math.min(#one.list, #other.list)
	if shorter == 0 then
		return if one.plain == other.plain then 1 else 0
	end
	return math.min(common(one.list, other.set), common(other.list, one.set)) / shorter
end

--- The same, of two texts that are not compared with others.
function words.likeness(value: string, other: string): number
	return words.alike(words.stems(value), words.stems(other))
end

--- Whether one of `others` says nearly the same as `value`: more than `limit` of it, three quarters by default.
function words.repeats(value: string, others: { string }, limit: number?): boolean
	local own = words.stems(value)
	return list.some(others, function(other): boolean
		return words.alike(own, words.stems(other)) > (limit or 0.75)
	end)
end

--- Whether one of `others` holds more than three quarters of `value`, which then says nothing of its own.
function words.echoes(value: string, others: { string }): boolean
	return list.some(others, function(other): boolean
		return words.shared(value, other) > 0.75 * #words.of(value)
	end)
end

--- Returns the pieces of a text that say one thing each: sentences, and the parts of long ones.
function words.pieces(value: string): { string }
	local found: { string } = {}
	local function keep(piece: string)
		local trimmed = text.trim(piece)
		if #words.of(trimmed) > 0 then
			table.insert(found, trimmed)
		end
	end
	for _, line in text.lines((string.gsub(value, "([%.!?;])%s+", "%1\n"))) do
		if #words.of(line) > 12 then
			for _, piece in string.split(line, ", ") do
				keep(piece)
			end
		else
			keep(line)
		end
	end
	return found
end

return words
