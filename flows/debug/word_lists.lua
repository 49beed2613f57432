--!strict
--- The word lists and forms of `leak_words.yaml`, and the technical words of `terms.yaml`, ready to be searched with.

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local word_lists = {}

word_lists.FILE = yaml.load("./leak_words.yaml")
local TERMS = yaml.load("./terms.yaml")

--- Makes `\w` and `\b` mean ASCII letters alone: texts have no accents here, and the compiled pattern stays small.
local function ascii_letters(pattern: string): string
	local out, in_class, at = {}, false, 1
	while at <= #pattern do
		local one, two = string.sub(pattern, at, at), string.sub(pattern, at, at + 1)
		if two == "\\w" then
			table.insert(out, if in_class then "a-z0-9_" else "[a-z0-9_]")
			at += 2
		elseif two == "\\b" then
			table.insert(out, "(?-u:\\b)")
			at += 2
		elseif one == "\\" then
			table.insert(out, two)
			at += 2
		else
			in_class = if one == "[" then true elseif one == "]" then false else in_class
			table.insert(out, one)
			at += 1
		end
	end
	return table.concat(out)
end

--- Replaces names of word lists, such as `{fix}`, by their words.
function word_lists.fill(pattern: string): string
	local out = pattern
	for _ = 1, 4 do
		out = string.gsub(out, "{([%l_]+)}", function(name: string): string
			local words = word_lists.FILE.lists[name]
			if words == nil then
				error(`leak_words.yaml has no list "{name}"`, 0)
			end
			return "(?:" .. (string.gsub(words, "%s+", "|")) .. ")"
		end)
	end
	return ascii_letters((string.gsub(out, "\n%s*", "")))
end

--- Returns one pattern that finds what any of these finds: to search once is faster than to search for each.
function word_lists.any_of(patterns: { string }): string
	return "(?:" .. table.concat(list.map(patterns, word_lists.fill), ")|(?:") .. ")"
end

--- The forms of sentences, by name: one pattern each.
word_lists.FORMS = {} :: { [string]: string }
for name, patterns in word_lists.FILE.forms do
	word_lists.FORMS[name] = word_lists.any_of(patterns)
end

--- Beginnings of technical words, by their first three letters.
local STEMS: { [string]: { string } } = {}
local WHOLE: { [string]: boolean } = {}
for _, words in TERMS.stems do
	for _, stem in text.split(words, " ") do
		local first = string.sub(stem, 1, 3)
		STEMS[first] = STEMS[first] or {}
		table.insert(STEMS[first], stem)
	end
end
for _, words in TERMS.words do
	for _, word in text.split(words, " ") do
		WHOLE[word] = true
	end
end

--- Words of one meaning.
local SAME: { { string } } = list.map(TERMS.same, function(group: string): { string }
	return text.split(group, " ")
end)

--- Whether a word, in small letters and without accents, belongs to the trade.
function word_lists.is_term(word: string): boolean
	local bare = string.gsub(word, "s$", "")
	if WHOLE[word] or WHOLE[bare] then
		return true
	end
	local stems: { string } = STEMS[string.sub(word, 1, 3)] or {}
	return list.some(stems, function(stem): boolean
		return string.sub(word, 1, #stem) == stem
	end)
end

--- Whether a word was used, in whatever form: endings differ, so only its beginning counts. Whoever said it in the other language, or
--- wrote what it means, has said it, too.
function word_lists.was_said(word: string, said: string): boolean
	if string.find(said, string.sub(word, 1, math.max(#word - 2, 4)), 1, true) ~= nil then
		return true
	end
	return list.some(SAME, function(group): boolean
		local means = list.some(group, function(one): boolean
			return string.sub(word, 1, #one) == one
		end)
		return means and list.some(group, function(one): boolean
			return string.find(said, one, 1, true) ~= nil
		end)
	end)
end

return word_lists
