--!strict
--- What a developer means by an answer, by its words: that they ask for the answer or for a concept, and the mood that a quote
--- may fit (`moods.yaml`). Without a model, so that it is certain.

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local intent = {}

--- How surely a response asks for the answer.
export type Plea = "sure" | "maybe"

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

--- Returns whether a response asks for the answer itself, by its words: `sure` where one of its sentences says so, `maybe` where
--- one may, which only a reader of the whole can tell, nil where none does. Who asks back which line is meant asks for nothing.
function intent.plea(response: string): Plea?
	local maybe = false
	for _, sentence in text.split(string.gsub(intent.normalize(response), "([.?!;])%s", "%1\n"), "\n") do
		if not matches_any(sentence, MOODS.plea.asks_back) then
			if matches_any(sentence, MOODS.plea.sure) then
				return "sure"
			end
			maybe = maybe or matches_any(sentence, MOODS.plea.maybe)
		end
	end
	return if maybe then "maybe" else nil
end

--- Whether a response surely asks for the answer itself.
function intent.asks_for_answer(response: string): boolean
	return intent.plea(response) == "sure"
end

--- Whether a response asks for a concept to be explained, which is allowed.
function intent.asks_for_concept(response: string): boolean
	return matches_any(intent.normalize(response), MOODS.concept) and not intent.asks_for_answer(response)
end

--- Returns the context by which a quote is chosen: `avoidance`, `overwhelm`, `strategy` …, or nil.
function intent.quote_context(response: string): string?
	if intent.asks_for_answer(response) then
		return "avoidance"
	end
	local plain = intent.normalize(response)
	for _, mood in MOODS.contexts do
		if matches_any(plain, mood.patterns) then
			return mood.context
		end
	end
	return nil
end

return intent
