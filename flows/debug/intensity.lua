--!strict
--- The voices, from the mildest to the hardest: the three of the specification, and the user's own. Who asks for the answer
--- gets the next harder one, and who goes on without asking comes back to the milder ones.

local app = require("./app")
local list = require("../common/list")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local intensity = {}

--- What a session can say of a voice. The level of each is its place here.
intensity.LADDER = session.INTENSITIES

--- So many turns with progress and without a plea make room for a milder voice.
local STEADY = 3

--- The level of a voice that does not say it.
local DEFAULT_LEVEL = 2

--- How hard a voice is.
local function level(voice: personas.Persona): number
	local known = table.find(intensity.LADDER, voice.slug)
	return if known then known else (tonumber(voice.meta.level) or DEFAULT_LEVEL)
end

--- Returns all voices, from the mildest to the hardest: personas with the tag `intensity`.
function intensity.voices(): { personas.Persona }
	local all: { personas.Persona } = {}
	for _, slug in intensity.LADDER do
		table.insert(all, personas.get(slug))
	end
	for _, voice in personas.list({ tag = "intensity" }) do
		if table.find(intensity.LADDER, voice.slug) == nil then
			table.insert(all, voice)
		end
	end
	table.sort(all, function(one: personas.Persona, other: personas.Persona): boolean
		local first, second = level(one), level(other)
		return if first == second then one.slug < other.slug else first < second
	end)
	return all
end

--- Returns the voice that the user names; raises where there is none.
function intensity.find(slug: string, voices: { personas.Persona }): personas.Persona
	local slugs = list.map(voices, function(voice): string
		return voice.slug
	end)
	for _, voice in voices do
		if voice.slug == slug then
			return voice
		end
	end
	-- Any other persona can ask, too: what it lacks has its defaults.
	local other = personas.find(slug)
	if other ~= nil then
		return other
	end
	local near = text.nearest(slug, slugs)
	local here = `here are {table.concat(slugs, ", ")}; any persona of yours can ask, too, and with the tag \`intensity\` stands among them`
	return nietz.usage(`there is no voice "{slug}"`, (if near then `did you mean "{near}"? ` else "") .. here)
end

--- Returns which of the three of the specification a voice is nearest to, the milder of two.
function intensity.nearest(voice: personas.Persona): string
	local at = math.ceil(level(voice) - 0.5)
	return intensity.LADDER[math.clamp(at, 1, #intensity.LADDER)]
end

--- What there was before the intensity rose.
export type Before = { voice: string, escalated_to: string? }

--- Changes to the next harder voice, and says so. Returns what there was before, or nil where none is harder. With `later` the
--- question that comes next was made in the voice before.
function intensity.raise(self: app.App, later: boolean?): Before?
	self.progress.steady = 0
	local voice = app.voice(self)
	local harder = list.find(intensity.voices(), function(other): boolean
		return level(other) > level(voice)
	end)
	if harder == nil then
		ui.say(self.t("intensity.top", { name = voice.name }))
		return nil
	end
	local own = self.doc.nietz
	local before: Before = { voice = self.voice, escalated_to = own.escalatedTo }
	self.voice = harder.slug
	local reached = intensity.nearest(harder)
	local highest = if own.escalatedTo then table.find(intensity.LADDER, own.escalatedTo) or 0 else 0
	if (table.find(intensity.LADDER, reached) or 0) > highest then
		own.escalatedTo = reached
	end
	session.note_voice(self.doc, harder.slug)
	ui.say(self.t(if later then "intensity.rises_later" else "intensity.rises", { from = voice.name, to = harder.name }))
	return before
end

--- Takes a rise back, because it was no plea for the answer after all, and says so.
function intensity.take_back(self: app.App, before: Before)
	self.voice, self.doc.nietz.escalatedTo = before.voice, before.escalated_to
	ui.say(self.t("intensity.taken_back", { name = app.voice(self).name }))
end

--- Notes whether a turn was progress without a plea. After three such turns in a row the voice falls by one towards the one that
--- the session began with, and that is said.
function intensity.note(self: app.App, progress: boolean)
	local going = self.progress
	going.steady = if progress then going.steady + 1 else 0
	if going.steady < STEADY or self.voice == self.first_voice then
		return
	end
	going.steady = 0
	local voice, first = app.voice(self), personas.get(self.first_voice)
	local milder = first
	for _, other in intensity.voices() do
		if level(other) < level(voice) and level(other) > level(milder) then
			milder = other
		end
	end
	self.voice = milder.slug
	session.note_voice(self.doc, milder.slug)
	ui.say(self.t("intensity.falls", { from = voice.name, to = milder.name }))
end

return intensity
