--!strict
--- What a developer means by an answer, by its words: that they ask for the answer or for a concept, and the mood that a quote
--- may fit (`moods.yaml`). Without a model, so that it is certain.

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local intent = {}

local MOODS = yaml.load("./moods.yaml")

--- Returns a text for comparing: small letters, no accents, plain apostrophes.
function intent.normalize(value: string): string
	local folded = string.gsub(string.gsub(text.fold(value), "\u{2019}", "'"), "\u{2018}", "'")
	return text.trim((string.gsub(folded, "%s+", " ")))
end

local function matches_any(plain: string, patterns: { string }): boolean
	return list.some(patterns, function(pattern): boolean
		return text.search(plain, pattern) ~= nil
	end)
end

--- Whether a response asks for a concept to be explained, which is allowed.
function intent.asks_for_concept(response: string): boolean
	local plain = intent.normalize(response)
	return matches_any(plain, MOODS.concept) and not matches_any(plain, MOODS.asks_for_answer)
end

--- Whether a response asks for the answer itself.
function intent.asks_for_answer(response: string): boolean
	return matches_any(intent.normalize(response), MOODS.asks_for_answer)
end

--- Returns the context by which a quote is chosen: `avoidance`, `overwhelm`, `strategy` …, or nil.
function intent.quote_context(response: string): string?
	local plain = intent.normalize(response)
	for _, mood in MOODS.contexts do
		if matches_any(plain, mood.patterns) then
			return mood.context
		end
	end
	return nil
end

return intent
