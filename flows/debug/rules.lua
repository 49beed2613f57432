--!strict
--- Rules for session files that a JSON Schema cannot express.

local nietz = require("@nietz")
local vocabulary = require("./vocabulary")

local rules = {}

export type Fault = nietz.Fault

--- Whether a UUID is of version 4.
function rules.is_version_4(id: string): boolean
	return string.match(id, "^%x+%-%x+%-4%x+%-[89abAB]%x+%-%x+$") ~= nil
end

--- Returns what is odd in the tags of a file, though no reader stumbles over it.
local function remarks(doc: any, faults: { Fault })
	local function note(pointer: string, message: string)
		table.insert(faults, { pointer = pointer, message = message, severity = "note" })
	end
	local in_session: { [string]: boolean } = {}
	for index, seen in doc.behaviorTags do
		in_session[`{seen.turnNumber} {seen.tag}`] = true
		local tag = vocabulary.find(seen.tag)
		if tag == nil then
			note(`/behaviorTags/{index - 1}/tag`, `"{seen.tag}" is no dimension's tag in tags.yaml`)
		elseif tag.dimension ~= seen.dimension then
			note(`/behaviorTags/{index - 1}/dimension`, `"{seen.tag}" counts for {tag.dimension}, and not for {seen.dimension}`)
		end
	end
	local in_turns: { [string]: boolean } = {}
	local is_turn: { [number]: boolean } = {}
	for index, turn in doc.transcript do
		is_turn[turn.turnNumber] = true
		for at, name in turn.behaviorTags do
			in_turns[`{turn.turnNumber} {name}`] = true
			if not in_session[`{turn.turnNumber} {name}`] then
				note(`/transcript/{index - 1}/behaviorTags/{at - 1}`, `"{name}" is no tag of the session for turn {turn.turnNumber}`)
			end
		end
	end
	for name, score in (doc.nietz or {}).scores or {} do
		for at, number in score.turns or {} do
			if not is_turn[number] then
				note(`/nietz/scores/{name}/turns/{at - 1}`, `there is no turn {number}`)
			end
		end
	end
	for index, seen in doc.behaviorTags do
		if not in_turns[`{seen.turnNumber} {seen.tag}`] then
			note(`/behaviorTags/{index - 1}`, `turn {seen.turnNumber} has no tag "{seen.tag}"`)
		end
	end
end

--- Returns what is wrong with a document that its schema has accepted.
function rules.check(doc: any): { Fault }
	local faults: { Fault } = {}
	if not rules.is_version_4(doc.id) then
		table.insert(faults, { pointer = "/id", message = "must be a UUID of version 4" })
	end
	local seen: { [number]: boolean } = {}
	for index, turn in doc.transcript do
		if seen[turn.turnNumber] then
			table.insert(faults, { pointer = `/transcript/{index - 1}/turnNumber`, message = `repeats the number {turn.turnNumber}` })
		end
		seen[turn.turnNumber] = true
	end
	if doc.questionsToRootCause ~= #doc.transcript then
		table.insert(faults, {
			pointer = "/questionsToRootCause",
			message = `must be {#doc.transcript}, the number of turns in the transcript`,
		})
	end
	for index, tag in doc.behaviorTags do
		if not seen[tag.turnNumber] then
			table.insert(faults, { pointer = `/behaviorTags/{index - 1}/turnNumber`, message = `there is no turn {tag.turnNumber}` })
		end
		if not vocabulary.is_dimension(tag.dimension) then
			table.insert(faults, {
				pointer = `/behaviorTags/{index - 1}/dimension`,
				message = `"{tag.dimension}" is not a dimension of tags.yaml`,
			})
		end
	end
	remarks(doc, faults)
	return faults
end

return rules
