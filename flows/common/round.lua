--!strict
--- One round of several voices on one question: in which order they speak, which points each may see, and that it refers
--- only to points that were made. Knows no mode: how a voice is asked comes in as a function.

local json = require("@nietz/json")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local similarity = require("./similarity")
local task = require("@nietz/task")

local round = {}

--- One point that a voice made; others refer to it by its id.
export type Point = { id: string, by: string, text: string }
export type Contribution = {
	slug: string,
	name: string,
	texts: { string },
	references: { string },
	--- How many of the texts, at the end, answer others; all of them where it is absent.
	answers: number?,
}
export type Voice = personas.Persona
--- Asks one voice. `ids` are the points of others that it may refer to; with `must` it has to take up one of them.
--- Returns its texts and the ids that it refers to, or nil where it has nothing valid to say.
export type Speak = (voice: Voice, seen: { Point }, ids: { string }, must: boolean) -> ({ string }?, { string }?)
type Statement = { texts: { string }, refers: { string } }
export type OnFailure = (voice: Voice, err: unknown) -> ()
--- Is told what a voice said as soon as it is all that this voice says in the round.
export type OnSaid = (contribution: Contribution) -> ()

--- The most other voices that it may refer to.
local MAX_REFERENCES = 2

local function referenced_names(points: { Point }, ids: { string }, own: string): { string }
	local names: { string } = json.array({} :: { string })
	for _, id in ids do
		for _, point in points do
			if point.id == id and point.by ~= own and table.find(names, point.by) == nil and #names < MAX_REFERENCES then
				table.insert(names, point.by)
			end
		end
	end
	return names
end

--- Returns the id of the next point: ids go on from the last one, or from `before`, how many were given in rounds that are not here.
local function next_id(points: { Point }, before: number?): string
	local last = points[#points]
	local number = if last then tonumber(string.match(last.id, "%d+")) else before
	return `P{(number or 0) + 1}`
end

--- Lets one voice speak after `points`, adds what it says to them, and returns its contribution.
function round.speak_once(voice: Voice, points: { Point }, must: boolean, speak: Speak): Contribution?
	local ids: { string } = {}
	for _, point in points do
		if point.by ~= voice.name then
			table.insert(ids, point.id)
		end
	end
	local texts, refers = speak(voice, points, ids, must and #ids > 0)
	if texts == nil then
		return nil
	end
	local references = referenced_names(points, refers or {}, voice.name)
	for _, text in texts do
		table.insert(points, { id = next_id(points), by = voice.name, text = text })
	end
	return { slug = voice.slug, name = voice.name, texts = texts, references = references }
end

--- Lets all voices speak side by side: each has heard `seen`, and none of them another one of this round. What they say
--- is added to `points` in the order of the voices. With `one_first` the others are asked when the first of them has spoken: a
--- service that keeps prompts has by then what all of them read, and they pay a tenth for it. `before` is how many points were made
--- before those that are here.
function round.speak_side_by_side(
	voices: { Voice },
	seen: { Point },
	points: { Point },
	speak: Speak,
	on_failure: OnFailure,
	one_first: boolean?,
	before: number?
): { Contribution }
	local branches: { [string]: () -> Statement | false } = {}
	for _, voice in voices do
		branches[voice.slug] = function(): Statement | false
			local ids: { string } = {}
			for _, point in seen do
				if point.by ~= voice.name then
					table.insert(ids, point.id)
				end
			end
			local texts, refers = speak(voice, seen, ids, #ids > 0)
			return if texts then { texts = texts, refers = refers or {} } else false
		end
	end
	local settled = {}
	if one_first and #voices > 1 then
		local slug = voices[1].slug
		settled = task.settle({ [slug] = branches[slug] })
		branches[slug] = nil
	end
	for slug, outcome in task.settle(branches) do
		settled[slug] = outcome
	end
	local found: { Contribution } = {}
	for _, voice in voices do
		local outcome = settled[voice.slug]
		if not outcome.ok then
			on_failure(voice, outcome.error)
		elseif outcome.value then
			local said = outcome.value :: Statement
			local texts = said.texts
			local references = referenced_names(seen, said.refers, voice.name)
			for _, text in texts do
				table.insert(points, { id = next_id(points, before), by = voice.name, text = text })
			end
			table.insert(found, { slug = voice.slug, name = voice.name, texts = texts, references = references })
		end
	end
	return found
end

--- Takes the last point of a voice with this text away again.
local function drop(points: { Point }, by: string, text: string)
	for index = #points, 1, -1 do
		if points[index].by == by and points[index].text == text then
			table.remove(points, index)
			return
		end
	end
end

--- Lets all voices speak side by side without hearing each other; then one of them, by chance, answers the others. So opinions
--- are formed alone, and at least one is discussed.
function round.speak_blind(
	voices: { Voice },
	points: { Point },
	speak: Speak,
	on_failure: OnFailure,
	before: number?,
	on_said: OnSaid?
): { Contribution }
	local found = round.speak_side_by_side(voices, {}, points, speak, on_failure, nil, before)
	local answering = if #found < 2 then nil else random.choice(found)
	for _, contribution in found do
		if on_said ~= nil and contribution ~= answering then
			on_said(contribution)
		end
	end
	if answering == nil then
		return found
	end
	for _, voice in voices do
		if voice.slug == answering.slug then
			local reply = round.speak_once(voice, points, true, speak)
			if reply ~= nil then
				-- What it says twice is said once, and everything that counts is shown.
				local own = #answering.texts
				for _, text in reply.texts do
					if not similarity.repeats(text, answering.texts) then
						table.insert(answering.texts, text)
					else
						drop(points, voice.name, text)
					end
				end
				answering.answers = #answering.texts - own
				answering.references = reply.references
			end
		end
	end
	if on_said ~= nil then
		on_said(answering)
	end
	return found
end

--- Lets the voices speak one after the other, in an order by chance, each hearing all before it.
function round.speak_in_turn(voices: { Voice }, points: { Point }, speak: Speak, on_said: OnSaid?): { Contribution }
	local found: { Contribution } = {}
	for _, voice in random.shuffle(voices) do
		local contribution = round.speak_once(voice, points, true, speak)
		if contribution ~= nil then
			table.insert(found, contribution)
			if on_said ~= nil then
				on_said(contribution)
			end
		end
	end
	return found
end

return round
