--!strict
--- How much two texts say the same, by the words that they share. Whatever judges a model's text without asking a model
--- (repeats, evidence, where a line comes from) uses this.

local list = require("./list")
local text = require("@nietz/text")

local similarity = {}

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
function similarity.words(value: string): { string }
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

--- A text prepared for many comparisons: of each word the first five letters, so that a plural or another ending still
--- matches.
export type Stems = { plain: string, list: { string }, set: { [string]: boolean } }

--- Returns the stems of a text.
function similarity.stems(value: string): Stems
	local list: { string } = {}
	local set: { [string]: boolean } = {}
	for _, word in similarity.words(value) do
		local stem = string.sub(word, 1, 5)
		table.insert(list, stem)
		set[stem] = true
	end
	return { plain = text.fold(text.trim(value)), list = list, set = set }
end

local function count_common(list: { string }, set: { [string]: boolean }): number
	local count = 0
	for _, stem in list do
		count += if set[stem] then 1 else 0
	end
	return count
end

--- Returns how many words `value` shares with `other`.
function similarity.shared_words(value: string, other: string): number
	return similarity.shared_stems(value, similarity.stems(other))
end

--- The same for a text that is compared with many.
function similarity.shared_stems(value: string, other: Stems): number
	return count_common(similarity.stems(value).list, other.set)
end

--- Returns how much of the shorter text stands in the other one, from 0 to 1.
function similarity.of_stems(one: Stems, other: Stems): number
	local shorter = math.min(#one.list, #other.list)
	if shorter == 0 then
		return if one.plain == other.plain then 1 else 0
	end
	return math.min(count_common(one.list, other.set), count_common(other.list, one.set)) / shorter
end

--- The same for two plain texts.
function similarity.of_texts(value: string, other: string): number
	return similarity.of_stems(similarity.stems(value), similarity.stems(other))
end

--- Whether one of `others` says nearly the same as `value`: more than `limit` of it, three quarters by default.
function similarity.repeats(value: string, others: { string }, limit: number?): boolean
	local own = similarity.stems(value)
	return list.some(others, function(other): boolean
		return similarity.of_stems(own, similarity.stems(other)) > (limit or 0.75)
	end)
end

--- Whether one of `others` holds more than three quarters of the words of `value`, which then adds nothing.
function similarity.echoes(value: string, others: { string }): boolean
	return list.some(others, function(other): boolean
		return similarity.shared_words(value, other) > 0.75 * #similarity.words(value)
	end)
end

--- Splits a text into statements that say one thing each: sentences, and the parts of long ones.
function similarity.statements(value: string): { string }
	local found: { string } = {}
	local function keep(piece: string)
		local trimmed = text.trim(piece)
		if #similarity.words(trimmed) > 0 then
			table.insert(found, trimmed)
		end
	end
	for _, line in text.lines((string.gsub(value, "([%.!?;])%s+", "%1\n"))) do
		if #similarity.words(line) > 12 then
			for _, piece in string.split(line, ", ") do
				keep(piece)
			end
		else
			keep(line)
		end
	end
	return found
end

return similarity
