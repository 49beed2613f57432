--!strict
--- The debate: a first cycle in which nobody hears anybody, then cycles in which each must take up or challenge what
--- another said, until the figures say that it is over, the limit is reached, or the user stops it.

local agreement = require("./agreement")
local app = require("./app")
local conversation = require("./conversation")
local failure = require("../common/failure")
local interjections = require("./interjections")
local list = require("../common/list")
local persona_turns = require("./persona_turns")
local proposals = require("./proposals")
local random = require("@nietz/random")
local round = require("../common/round")
local ui = require("@nietz/ui")

local debate = {}

--- Returns the positions after a cycle: the new ones, and the last one of each persona that could not speak.
local function positions_after(self: app.App, number: number): { agreement.Position }
	local found: { agreement.Position } = {}
	for _, persona in self.seats do
		local position = persona_turns.last_position(self, persona.name)
		for _, turn in self.doc.messageTurns do
			if turn.messageType == "discussion" and turn.sender.name == persona.name and turn.relatedCycleOrRound.number == number then
				position = { name = persona.name, option = turn.metadata.stance, confidence = turn.metadata.confidence }
			end
		end
		if position ~= nil then
			-- Options that were made one share their votes.
			local option = app.standing_option(self, position.option)
			table.insert(found, { name = position.name, option = option, confidence = position.confidence })
		end
	end
	return found
end

local function measure_cycle(self: app.App, number: number): agreement.Measure
	local points: { string }, earlier: { string } = {}, {}
	for _, point in self.points do
		table.insert(if point.cycle == number then points else earlier, point.text)
	end
	local history = self.doc.metadata.measures or {}
	local before: { agreement.Position } = {}
	for _, position in if #history > 0 then history[#history].positions else {} :: { agreement.Position } do
		local option = app.standing_option(self, position.option)
		table.insert(before, { name = position.name, option = option, confidence = position.confidence })
	end
	return agreement.measure(number, positions_after(self, number), before, points, earlier)
end

--- Says that a persona could not speak, and keeps why.
local function on_failure(self: app.App, failures: { unknown }): round.OnFailure
	return function(persona: round.Voice, err: unknown)
		local problem = failure.of(err)
		table.insert(failures, err)
		ui.say(self.t("debate.silent", { who = persona.name, why = problem.message }))
		app.record_event(self, "failure", { code = problem.code or "flow-error", who = persona.name })
	end
end

--- Records what was said in a cycle, options first: an author stands for what they propose.
local function record_cycle(self: app.App, number: number, found: { round.Contribution }, heard: { [string]: persona_turns.Reply })
	local new = proposals.letter(
		self,
		list.map(found, function(contribution: round.Contribution): app.Values
			return { name = contribution.name, value = heard[contribution.slug].value }
		end)
	)
	proposals.open(self, new)
	local told: { string } = {}
	for _, contribution in found do
		local _, text = persona_turns.record(self, contribution.name, heard[contribution.slug], number, false)
		table.insert(told, text)
	end
	for _, option in new do
		local sources, by = option.from or {}, option.by or {}
		local from = if #sources > 0 then self.t("debate.from", { options = table.concat(sources, ", ") }) else ""
		ui.say(self.t("debate.option", { id = option.id, from = from, text = option.text, by = table.concat(by, ", ") }))
	end
	conversation.tell_cycle(self, number, told, new)
	if #new > 0 then
		proposals.unite(self)
	end
end

--- Lets all personas speak once, side by side. Returns whether anybody did; raises where nobody could in the first cycle.
local function run_cycle(self: app.App, number: number): boolean
	ui.say(self.t(if number == 1 then "debate.first" else "debate.cycle", { number = number }))
	app.record_event(self, "cycle", { discussionId = random.uuid(), number = number, topic = interjections.topic(self) })
	local heard: { [string]: persona_turns.Reply } = {}
	local failures: { unknown } = {}
	local found = round.speak_side_by_side(
		self.seats,
		interjections.heard_points(self, number) :: any,
		{},
		persona_turns.speaker(self, heard),
		on_failure(self, failures),
		app.shares_enough(self)
	)
	if #found > 0 then
		record_cycle(self, number, found, heard)
	elseif number == 1 and #failures > 0 then
		error(failures[1], 0)
	elseif number == 1 then
		error({ code = "reply-invalid", message = self.t("debate.nobody") }, 0)
	end
	return #found > 0
end

--- Ends a cycle in the record.
local function close_cycle(self: app.App, one: agreement.Measure)
	app.record_event(self, "cycle_over", {
		number = one.cycle,
		status = if one.cycle >= self.limit.cycles then "limit_reached" else "concluded",
		resolution = agreement.summary(one, self.doc.metadata.options, self.t),
		measures = one,
	})
	proposals.close(self, one.positions)
end

--- Runs one cycle to its end, and returns how the debate ended with it, or nil. `asks` where the user is heard behind it.
function debate.run_cycle(self: app.App, number: number, asks: boolean): string?
	if not run_cycle(self, number) then
		-- What was said before stands; there is nothing new to measure.
		ui.say(self.t("debate.nobody"))
		close_cycle(self, measure_cycle(self, number))
		ui.say(self.t("ended.silent"))
		return "silent"
	end
	local one = measure_cycle(self, number)
	local history = table.clone(self.doc.metadata.measures or {})
	table.insert(history, one)
	local outcome = agreement.outcome(history, self.limit.cycles)
	ui.say(`*{agreement.summary(one, self.doc.metadata.options, self.t)}*`)
	if outcome == "limit_reached" then
		ui.say(self.t("debate.limit", { number = number, limit = self.limit.cycles }))
	elseif outcome ~= nil then
		ui.say(self.t(`ended.{outcome}`))
	end
	if outcome ~= nil and asks then
		-- What somebody has wrong is said before the answer is written, and not after.
		outcome = if interjections.last_word(self, number) then nil else outcome
	elseif asks and not interjections.hear(self, number) then
		outcome = "stopped"
		ui.say(self.t("ended.stopped"))
	end
	-- Measured again: a persona that answered the user may have changed its position.
	close_cycle(self, measure_cycle(self, number))
	return outcome
end

--- Runs the debate and returns how it ended.
function debate.run(self: app.App): string
	app.record_event(self, "status", { status = "debating" })
	local number = 0
	while true do
		number += 1
		local outcome = debate.run_cycle(self, number, self.params.pause)
		if outcome ~= nil then
			app.record_event(self, "outcome", { outcome = outcome })
			return outcome
		end
	end
end

--- One more cycle after the answer, because something is known that was not. Returns whether there was room for it.
function debate.one_more(self: app.App): boolean
	local number = self.doc.debateCycles + 1
	app.record_event(self, "status", { status = "debating" })
	if number > self.limit.cycles then
		ui.say(self.t("debate.no_room", { limit = self.limit.cycles }))
		return false
	end
	local outcome = debate.run_cycle(self, number, false)
	app.record_event(self, "outcome", { outcome = outcome or self.doc.metadata.outcome })
	return true
end

return debate
