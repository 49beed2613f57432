--!strict
--- The ladder of hints: a session that makes no progress is helped, by one step at a time, with what its own words and files
--- give. A hint says where to look, and never a cause or a fix; questions that carry one are checked like all others.

local app = require("./app")
local intent = require("./intent")
local ledger = require("./ledger")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local hints = {}

--- The steps of the ladder, from the mildest.
hints.STEPS = { "nudge", "pointed", "narrow", "broad" }

--- So many turns without progress bring the first step, each further one the next.
local PATIENCE = 2
--- Before so many answers there is no hint.
local FEWEST_ANSWERS = 2
--- Who says so often that they do not know gets one step more.
local LOST = 3
--- How many places a narrow hint names.
local MOST_PLACES = 3

--- A step of the ladder with what it points at: the developer's own words (`""` for none), and places of theirs.
export type Hint = { step: string, turns: number, quote: string, places: { string } }

local function answers(self: app.App): number
	local count = 0
	for _, turn in self.doc.transcript do
		count += if turn.response ~= "" then 1 else 0
	end
	return count
end

--- Returns which step the next question stands on: 0 for none.
local function level(self: app.App): number
	local progress = self.progress
	local by_turns = if progress.stalled < PATIENCE then 0 else progress.stalled - PATIENCE + 1
	return math.clamp(by_turns + progress.raised, 0, #hints.STEPS)
end

--- Returns the places that the developer has named or shown, the last one first: lines, files, and where what they saw stands.
local function places(self: app.App): { string }
	local found: { string } = {}
	local function take(place: string)
		if #found < MOST_PLACES and table.find(found, place) == nil then
			table.insert(found, place)
		end
	end
	for index = #self.code_files, 1, -1 do
		local file = self.code_files[index]
		for at = #file.focus, 1, -1 do
			take(`{file.name}:{file.focus[at]}`)
		end
		take(file.name)
	end
	local known = ledger.of(self)
	if known ~= nil then
		for _, entry in known.seen do
			if entry.evidence ~= nil then
				take(entry.evidence)
			end
		end
	end
	return found
end

--- Returns the step of the ladder that the next question stands on, or nil; with the response that it follows.
function hints.current(self: app.App, response: string?): Hint?
	local at = level(self)
	if at == 0 then
		return nil
	end
	return {
		step = hints.STEPS[at],
		turns = self.progress.stalled,
		quote = ledger.weakest(self, response) or "",
		places = places(self),
	}
end

--- Hears a response before the next question is made: whoever says for the third time that they do not know is helped.
function hints.hear(self: app.App, response: string)
	if intent.quote_context(response) ~= "overwhelm" then
		return
	end
	self.progress.lost += 1
	if self.progress.lost >= LOST then
		self.progress.lost = 0
		self.progress.raised += 1
	end
end

--- Notes whether a response was progress. Progress ends the hints; it has to be earned again.
function hints.note(self: app.App, progress: boolean)
	if progress then
		self.progress.stalled, self.progress.raised, self.progress.lost = 0, 0, 0
	else
		self.progress.stalled += 1
	end
end

--- Gives a hint that was asked for, from the developer's own words, and no answer counts for it. The questions that follow stand
--- one step higher, until there is progress.
function hints.ask(self: app.App)
	local missing = FEWEST_ANSWERS - answers(self)
	if missing > 0 then
		ui.say(translations.counted(self.t, "hint.early", missing))
		return
	end
	self.progress.raised += 1
	local hint = hints.current(self) :: Hint
	local known = if hint.step == "narrow" then #hint.places > 0 else hint.step == "broad" or hint.quote ~= ""
	-- Without words to point at, what was named or shown is nearer to the case than a question that fits any.
	local instead = if hint.step == "nudge" and #hint.places > 0 then "places" else "alone"
	ui.say(self.t(if known then `hint.{hint.step}` else `hint.{hint.step}_{instead}`, {
		quote = hint.quote,
		places = table.concat(hint.places, ", "),
	}))
end

return hints
