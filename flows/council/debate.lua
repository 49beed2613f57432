--!strict
--- The debate: a first cycle in which nobody hears anybody, then cycles in which each must take up or challenge what
--- another said, until the figures say that it is over, the limit is reached, or the user stops it.

local agreement = require("./agreement")
local app = require("./app")
local clock = require("@nietz/clock")
local dialogue = require("./dialogue")
local failure = require("../common/failure")
local persona_turns = require("./persona_turns")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local round = require("../common/round")
local shape = require("../common/shape")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local debate = {}

--- Returns the points that are heard in a cycle: those of the cycle before, with answers to the user since.
local function heard_points(self: app.App, number: number): { app.Point }
	local found: { app.Point } = {}
	for _, point in self.points do
		if point.cycle == number - 1 then
			table.insert(found, point)
		end
	end
	return found
end

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
			table.insert(found, position)
		end
	end
	return found
end

local function measure_cycle(self: app.App, number: number): agreement.Measure
	local texts: { string }, earlier: { string } = {}, {}
	for _, point in self.points do
		table.insert(if point.cycle == number then texts else earlier, point.text)
	end
	local history = self.doc.metadata.measures or {}
	local before = if #history > 0 then history[#history].positions else {}
	return agreement.measure(number, positions_after(self, number), before, texts, earlier)
end

--- Says that a persona could not speak, and keeps why.
local function on_failure(self: app.App, failures: { any }): round.OnFailure
	return function(voice: any, err: any)
		local problem = failure.of(err)
		table.insert(failures, err)
		ui.say(`{voice.name} could not speak: {problem.message}`)
		app.record_event(self, "failure", { code = problem.code or "flow-error", who = voice.name })
	end
end

--- Lets all personas speak once, side by side.
local function run_cycle(self: app.App, number: number)
	ui.say(`### Cycle {number}: {if number == 1 then "each on their own" else "hearing each other"}`)
	local topic = self.doc.metadata.topic
	if #self.remarks > 0 then
		topic = `{topic} (the user: {table.concat(self.remarks, "; ")})`
	end
	app.record_event(self, "cycle", { discussionId = random.uuid(), number = number, topic = topic })
	local heard: { [string]: persona_turns.Reply } = {}
	local failures: { any } = {}
	local found = round.speak_side_by_side(
		self.seats,
		heard_points(self, number) :: any,
		{},
		persona_turns.speaker(self, heard),
		on_failure(self, failures)
	)
	for _, contribution in found do
		persona_turns.record(self, contribution.name, heard[contribution.slug], contribution.texts, number, nil)
	end
	self.remarks = {}
	if #found == 0 and #failures > 0 then
		error(failures[1], 0)
	elseif #found == 0 then
		error({ code = "reply-invalid", message = "no persona of the council gave a reply that can be used" }, 0)
	end
end

--- Asks one persona the user's question; all hear the answer in the next cycle.
local function answer_user(self: app.App, name: string, question: string, number: number)
	local persona: personas.Persona? = nil
	for _, seat in self.seats do
		persona = if seat.name == name then seat else persona
	end
	local vars = app.prompt_vars(self)
	vars.seen, vars.question = heard_points(self, number + 1), question
	local began = clock.unix()
	local value, reply = app.ask_model(self, {
		prompt = "reply",
		vars = vars,
		schema = shape.object({ "points", "recommends", "stance", "sure" }, {
			points = shape.list(shape.text(3, 300), 1, 3),
			recommends = shape.text(3, 200),
			stance = { enum = persona_turns.stances(self) },
			sure = { type = "integer", minimum = 0, maximum = 100 },
		}),
		check = function(value: any): string?
			return persona_turns.check_reply(self, value)
		end,
		persona = persona,
		label = name,
		purpose = "council",
	})
	if value ~= nil then
		local latency = math.round((clock.unix() - began) * 1000) / 1000
		local heard: persona_turns.Reply = { value = value, model = (reply :: any).model, at = clock.now(), latency = latency }
		persona_turns.record(self, name, heard, persona_turns.texts(value), number, question)
	end
end

--- Takes lines of the user between two cycles. Returns whether the debate goes on.
local function hear_user(self: app.App, number: number): boolean
	local names: { string } = {}
	for _, persona in self.seats do
		table.insert(names, persona.name)
	end
	local prompt = `Cycle {number + 1} of at most {self.limit.cycles} is next. `
		.. "*Enter* goes on · `@Name …` asks one of them · anything else is heard by all · `stop` ends the debate · `extend` · `cancel`"
	while true do
		local line = dialogue.ask("between", "between", prompt, names)
		if line.kind == "empty" or (line.kind == "command" and line.name == "go-on") then
			return true
		elseif line.kind == "command" and line.name == "stop" then
			return false
		elseif line.kind == "command" then
			self.limit.extended, self.limit.cycles = true, math.max(self.limit.most, self.limit.cycles)
			app.record_event(self, "extended", { limit = self.limit.cycles })
			ui.say(`The debate may go on for up to {self.limit.cycles} cycles.`)
		elseif line.kind == "address" and line.name == nil then
			local near = text.nearest(line.typed, names)
			ui.say(
				`Nobody here is called "{line.typed}".`
					.. (if near then ` Did you mean "@{near}"?` else "")
					.. ` Here are: {table.concat(names, ", ")}.`
			)
		elseif line.kind == "address" and line.text == "" then
			ui.say(`What do you want to ask {line.name}?`)
		elseif line.kind == "address" then
			answer_user(self, line.name :: string, line.text, number)
		else
			local remark = (line :: any).text
			app.record_event(self, "remark", { text = remark })
			table.insert(self.remarks, remark)
			ui.say("All will hear that.")
		end
	end
end

local OUTCOME_TEXTS: { [string]: string } = {
	converged = "**Converged.** The council agrees enough to decide.",
	deadlock = "**Deadlock.** For two cycles nobody has moved; more talk would not change that.",
	nothing_new = "**Nothing new was said.** The debate ends here.",
	stopped = "**Stopped.** You ended the debate.",
}

--- Ends a cycle in the record.
local function close_cycle(self: app.App, one: agreement.Measure): string
	local resolution = agreement.summary(one, self.doc.metadata.options)
	app.record_event(self, "cycle_over", {
		number = one.cycle,
		status = if one.cycle >= self.limit.cycles then "limit_reached" else "concluded",
		resolution = resolution,
		measures = one,
	})
	return resolution
end

--- Runs the debate and returns how it ended.
function debate.run(self: app.App): string
	app.record_event(self, "status", { status = "debating" })
	local number = 0
	while true do
		number += 1
		run_cycle(self, number)
		local one = measure_cycle(self, number)
		local history = table.clone(self.doc.metadata.measures or {})
		table.insert(history, one)
		local outcome = agreement.outcome(history, self.limit.cycles)
		ui.say(`*{agreement.summary(one, self.doc.metadata.options)}*`)
		if outcome == nil and self.params.pause and not hear_user(self, number) then
			outcome = "stopped"
		end
		-- Measured again: a persona that answered the user may have changed its position.
		close_cycle(self, measure_cycle(self, number))
		if number >= self.limit.cycles then
			ui.say(`**Limit reached.** Cycle {number} of {self.limit.cycles} was the last.`)
		end
		if outcome ~= nil then
			app.record_event(self, "outcome", { outcome = outcome })
			if OUTCOME_TEXTS[outcome] ~= nil then
				ui.say(OUTCOME_TEXTS[outcome])
			end
			return outcome
		end
	end
end

return debate
