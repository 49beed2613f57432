--!strict
--- Brings session files from before schemaVersion 1 up to it: what they lack gets its default, what they have stays.

local json = require("@nietz/json")

local migrations = {}

local MIDDLE = 5

--- Returns a document without a version, or of version 0, as version 1.
function migrations.from_0(doc: any): any
	doc.schemaVersion = 1
	doc.problemDescription = doc.problemDescription or ""
	doc.intensity = doc.intensity or "nietzsche"
	doc.outcome = doc.outcome or "abandoned"
	doc.endTimestamp = doc.endTimestamp or doc.timestamp
	doc.codeFiles = doc.codeFiles or json.array({})
	doc.transcript = doc.transcript or json.array({})
	doc.behaviorTags = doc.behaviorTags or json.array({})
	for index, turn in doc.transcript do
		turn.turnNumber = turn.turnNumber or index
		turn.question = turn.question or ""
		turn.response = turn.response or ""
		turn.model = turn.model or "unknown"
		turn.quoteUsed = if turn.quoteUsed == nil then json.null else turn.quoteUsed
		turn.behaviorTags = turn.behaviorTags or json.array({})
		turn.timestamp = turn.timestamp or doc.timestamp
	end
	doc.questionsToRootCause = doc.questionsToRootCause or #doc.transcript
	doc.skillScores = doc.skillScores or {}
	for _, name in { "assumptionChecking", "evidenceGathering", "rootCauseSpeed" } do
		doc.skillScores[name] = doc.skillScores[name] or MIDDLE
	end
	return doc
end

--- The fields of ours that stood beside those of the specification, before they had a key of their own.
migrations.FORMERLY = { "/scoredBy", "/escalatedTo", "/voices", "/lifelineUsed", "/reflection", "/verification" }

--- Returns a document with those fields under their key.
function migrations.own_key(doc: any): any
	local own = { version = 1, state = "ended" }
	for _, place in migrations.FORMERLY do
		local name = string.sub(place, 2)
		own[name], doc[name] = doc[name], nil
	end
	doc.nietz = own
	return doc
end

--- What the manifest's `version.migrations` wants.
migrations.all = { [""] = migrations.from_0, ["0"] = migrations.from_0, ["1+"] = migrations.own_key }

return migrations
