--!strict
--- What a developer typed: the words that end a session, and what a response gives away of their mood (`moods.yaml`).

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local words = {}

local MOODS = yaml.load("./moods.yaml")

--- What ends a session, whole or with an explanation behind a colon, a comma or a dash.
local SOLVED = "^(i('ve| have)? )?(found it|solved( it)?|got it solved)|^(j'ai |je l'ai )?(trouve|resolu)|^c'est (trouve|resolu)"
local ENDS = {
	{ means = "solved", pattern = `^({SOLVED})([.!]*$|\\s*[:,;.!(—–-].*$)` },
	{ means = "give up", pattern = "^(ok(ay)?,? |alright,? )?(i give up|j'abandonne|je renonce|je laisse tomber)[.! ]*$" },
	{ means = "exit", pattern = "^[/:]?(exit|quit|quitter|sortir)[.! ]*$" },
}

--- Returns a text in small letters, without accents and with plain apostrophes.
function words.plain(value: string): string
	local folded = string.gsub(string.gsub(text.fold(value), "\u{2019}", "'"), "\u{2018}", "'")
	return text.trim((string.gsub(folded, "%s+", " ")))
end

--- Returns `solved`, `give up` or `exit` where the line says so, and nil for an answer.
function words.ending(line: string): ("solved" | "give up" | "exit")?
	local plain = words.plain(line)
	for _, ending in ENDS do
		if text.search(plain, ending.pattern) ~= nil then
			return ending.means :: any
		end
	end
	return nil
end

local function has(plain: string, patterns: { string }): boolean
	return list.some(patterns, function(pattern): boolean
		return text.search(plain, pattern) ~= nil
	end)
end

--- Whether a response asks for a concept to be explained, which is fine.
function words.asks_for_concept(response: string): boolean
	local plain = words.plain(response)
	return has(plain, MOODS.concept) and not has(plain, MOODS.asks_for_answer)
end

--- Whether a response asks for the answer itself.
function words.asks_for_answer(response: string): boolean
	return has(words.plain(response), MOODS.asks_for_answer)
end

--- Returns the context by which a quote is chosen: `avoidance`, `overwhelm`, `strategy` …, or nil.
function words.context(response: string): string?
	local plain = words.plain(response)
	for _, mood in MOODS.contexts do
		if has(plain, mood.patterns) then
			return mood.context
		end
	end
	return nil
end

return words
