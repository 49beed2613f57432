--!strict
--- The session document: how it begins, what a turn adds, and how tags and scores are kept. Pure: times and texts come in.

local documents = require("@nietz/documents")
local json = require("@nietz/json")
local list = require("../common/list")
local quotes = require("@nietz/quotes")
local vocabulary = require("./vocabulary")

local session = {}

export type Turn = {
	turnNumber: number,
	question: string,
	response: string,
	model: string,
	quoteUsed: documents.Document?,
	behaviorTags: { string },
	timestamp: string,
}
export type Doc = documents.Document

--- The score without tags, and the limits of scores.
local BASE_SCORE, MIN_SCORE, MAX_SCORE = 5, 1, 10

--- What the specification knows of voices, from the mildest to the hardest.
session.INTENSITIES = { "socrates", "nietzsche", "zarathustra" }

--- The version of `nietz`, the key under which a session keeps what the specification has no place for.
session.OWN_VERSION = 1

--- Keeps that a voice of the user's own asks from here on. The three of the specification need no word.
function session.note_voice(doc: Doc, slug: string)
	local own = doc.nietz
	local heard: { string } = own.voices or json.array({} :: { string })
	if table.find(session.INTENSITIES, slug) == nil then
		table.insert(heard, slug)
		own.voices = heard
	end
end

--- Returns a new session. It counts as abandoned until it ends, because nobody may come back to it.
function session.new(id: string, now: string, problem: string, intensity: string): Doc
	local doc = {
		schemaVersion = 1,
		id = id,
		timestamp = now,
		endTimestamp = now,
		problemDescription = problem,
		intensity = intensity,
		outcome = "abandoned",
		questionsToRootCause = 0,
		codeFiles = json.array({}),
		transcript = json.array({}),
		skillScores = {},
		behaviorTags = json.array({}),
		nietz = { version = session.OWN_VERSION, state = "open", scoredBy = "tags" },
	}
	doc.skillScores = session.scores_of(doc)
	return doc
end

--- Returns a quote as a session keeps it.
function session.quote_record(quote: quotes.Quote?): documents.Document?
	if quote == nil then
		return json.null
	end
	return { text = quote.text, philosopher = quote.philosopher, context = quote.context, source = quote.source }
end

--- Adds a turn with its question and returns it. Its response is empty until there is one.
function session.add_turn(doc: Doc, question: string, model: string, quote: quotes.Quote?, now: string): Turn
	local turn: Turn = {
		turnNumber = #doc.transcript + 1,
		question = question,
		response = "",
		model = model,
		quoteUsed = session.quote_record(quote),
		behaviorTags = json.array({}),
		timestamp = now,
	}
	table.insert(doc.transcript, turn)
	doc.questionsToRootCause = #doc.transcript
	doc.endTimestamp = now
	return turn
end

--- Adds tags to a turn and to the session's list.
function session.add_tags(doc: Doc, turn: Turn, tags: { string })
	for _, name in tags do
		local tag = vocabulary.find(name)
		if tag ~= nil and table.find(turn.behaviorTags, name) == nil then
			table.insert(turn.behaviorTags, name)
			table.insert(doc.behaviorTags, { turnNumber = turn.turnNumber, tag = name, dimension = tag.dimension })
		end
	end
end

--- Takes a tag away from a turn and from the session's list.
function session.remove_tag(doc: Doc, turn: Turn, name: string)
	local function without<T>(items: { T }, is: (item: T) -> boolean): { T }
		return json.array(list.filter(items, function(item): boolean
			return not is(item)
		end))
	end
	turn.behaviorTags = without(turn.behaviorTags, function(tag): boolean
		return tag == name
	end)
	doc.behaviorTags = without(doc.behaviorTags :: { any }, function(seen): boolean
		return seen.turnNumber == turn.turnNumber and seen.tag == name
	end)
end

--- Returns the scores that the tags alone make: 5, one more or less for each tag, between 1 and 10.
function session.scores_of(doc: Doc): { [string]: number }
	local scores: { [string]: number } = {}
	for _, dimension in vocabulary.DIMENSIONS do
		scores[dimension.name] = BASE_SCORE
	end
	for _, seen in doc.behaviorTags do
		local tag = vocabulary.find(seen.tag)
		if tag ~= nil and scores[tag.dimension] ~= nil then
			scores[tag.dimension] += tag.sign
		end
	end
	for name, score in scores do
		scores[name] = math.clamp(score, MIN_SCORE, MAX_SCORE)
	end
	return scores
end

return session
