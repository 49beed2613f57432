--!strict
--- The answer: the option with the most support by the figures of the debate, its trade-offs, its assumptions, what was
--- rejected and why, next steps, and who disagrees. Each point names who said it, and in which turn.

local agreement = require("./agreement")
local app = require("./app")
local json = require("@nietz/json")
local session = require("./session")
local shape = require("../common/shape")
local task = require("@nietz/task")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local answer = {}

export type From = { name: string, turnId: string }
export type Point = { text: string, from: { From } }

--- How a debate ended, in words.
local OUTCOME_TEXTS: { [string]: string } = {
	converged = "the council converged",
	deadlock = "the council is in deadlock",
	nothing_new = "nothing new was said any more",
	limit_reached = "the limit of cycles was reached",
	stopped = "the user stopped the debate",
}

--- How many points the answer may rest on: the latest of a long debate.
local MAX_POINTS = 80

--- Returns the schema of an object that also names the points that it rests on (`from`).
local function with_sources(ids: { string }, names: { string }, extra: { [string]: any }): { [string]: any }
	local order, properties = table.clone(names), table.clone(extra)
	table.insert(order, "from")
	properties.from = shape.list({ enum = ids }, 1, 3)
	return shape.object(order, properties)
end

local function recent_points(self: app.App): { app.Point }
	local found: { app.Point } = {}
	for index, point in self.points do
		if index > #self.points - MAX_POINTS then
			table.insert(found, point)
		end
	end
	return found
end

--- Returns the options that may be chosen: the one with the most confidence behind it, or those that share that place.
local function eligible_options(self: app.App): { string }
	local history = self.doc.metadata.measures
	local last: agreement.Measure = history[#history]
	local most = 0
	for _, percent in last.support do
		most = math.max(most, percent)
	end
	local found: { string } = {}
	for _, option in self.doc.metadata.options do
		if last.leading == option.id or (last.leading == nil and (most == 0 or last.support[option.id] == most)) then
			table.insert(found, option.id)
		end
	end
	return found
end

local function answer_schema(self: app.App, ids: { string }, options: { string }): { [string]: any }
	-- Where only one option can be chosen, the schema leaves it out of the rejected ones.
	local others: { string } = {}
	for _, option in self.doc.metadata.options do
		if #options > 1 or option.id ~= options[1] then
			table.insert(others, option.id)
		end
	end
	local function line(most: number): shape.Shape
		return shape.text(3, most)
	end
	local function text(most: number): shape.Shape
		return with_sources(ids, { "text" }, { text = line(most) })
	end
	local rejected = with_sources(ids, { "option", "why" }, { option = { enum = others }, why = line(240) })
	return shape.object({ "option", "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }, {
		assumptions = shape.list(text(200), 0, 4),
		decision = text(300),
		next_steps = shape.list(text(200), 1, 5),
		option = { enum = options },
		rejected = shape.list(rejected, 1, #others),
		tradeoffs = shape.list(text(240), 1, 4),
	})
end

--- Returns what is wrong with the rejected options, or nil: each option that is not chosen must be there once.
local function rejection_fault(self: app.App, value: any): string?
	local seen: { [string]: boolean } = {}
	for _, item in value.rejected do
		if item.option == value.option then
			return `option {item.option} is decided for, and cannot be rejected`
		elseif seen[item.option] then
			return `option {item.option} is rejected twice`
		end
		seen[item.option] = true
	end
	for _, option in self.doc.metadata.options do
		if option.id ~= value.option and not seen[option.id] then
			return `say in rejected why option {option.id} is not taken`
		end
	end
	return nil
end

--- Returns who said these points, each turn once.
local function sources_of(self: app.App, ids: { string }): { From }
	local found: { From } = json.array({} :: { From })
	for _, id in ids do
		for _, point in self.points do
			local twice = false
			for _, other in found do
				twice = twice or other.turnId == point.turnId
			end
			if point.id == id and not twice then
				table.insert(found, { name = point.by, turnId = point.turnId })
			end
		end
	end
	return found
end

--- Asks each persona that holds another option why, side by side.
local function minority_reports(self: app.App, option: string, decision: string): { Point }
	local history = self.doc.metadata.measures
	local against: { [string]: agreement.Position } = {}
	for _, position in (history[#history] :: agreement.Measure).positions do
		if position.option ~= option and position.option ~= agreement.UNDECIDED then
			against[position.name] = position
		end
	end
	local branches: { [string]: () -> any } = {}
	for _, persona in self.seats do
		local position = against[persona.name]
		if position ~= nil then
			branches[persona.slug] = function(): any
				local vars = app.prompt_vars(self)
				vars.decision, vars.option = decision, app.option_text(self, option)
				vars.stance, vars.confidence = app.option_text(self, position.option), position.confidence
				vars.points = recent_points(self)
				return app.ask_model(self, {
					prompt = "minority",
					vars = vars,
					schema = shape.object(
						{ "report", "would_convince" },
						{ report = shape.text(3, 400), would_convince = shape.text(3, 200) }
					),
					persona = persona,
					label = persona.name,
					purpose = "council",
				}) or false
			end
		end
	end
	local reports: { Point } = json.array({} :: { Point })
	local settled = task.all(branches)
	for _, persona in self.seats do
		local value, position = settled[persona.slug], against[persona.name]
		if position ~= nil then
			-- Where it gave no report, its last position is on the record all the same.
			local text = if value
				then `{app.to_line(value.report)} *What would convince me:* {app.to_line(value.would_convince)}`
				else `Stands for {position.option}: {app.option_text(self, position.option)} (confidence {position.confidence}).`
			local turn = app.record_turn(self, {
				sender = app.participant_of(self, persona.name),
				messageType = "conclusion",
				content = text,
				number = self.doc.debateCycles,
				metadata = { stance = position.option, confidence = position.confidence },
			})
			table.insert(reports, { text = text, from = json.array({ { name = persona.name, turnId = turn.turnId } }) })
		end
	end
	return reports
end

--- Returns the assumptions made for skipped questions, as points of whoever stated them.
local function stated_assumptions(self: app.App): { Point }
	local found: { Point } = json.array({} :: { Point })
	for _, assumption in self.doc.assumptionLog do
		for _, turn in self.doc.messageTurns do
			if turn.messageType == "assumption_statement" and turn.metadata.assumptionId == assumption.assumptionId then
				local source = { { name = turn.sender.name, turnId = turn.turnId } }
				table.insert(found, { text = assumption.assumption, from = json.array(source) })
			end
		end
	end
	return found
end

--- Sums up the debate and records the answer as a proposal.
function answer.propose(self: app.App)
	local vars = app.prompt_vars(self)
	local history = self.doc.metadata.measures
	local options = eligible_options(self)
	vars.points = recent_points(self)
	vars.remarks = {}
	for _, remark in self.doc.metadata.remarks or {} do
		table.insert(vars.remarks, remark.text)
	end
	vars.standing = agreement.summary(history[#history], self.doc.metadata.options)
	vars.outcome = OUTCOME_TEXTS[self.doc.metadata.outcome]
	vars.eligible = table.concat(options, " or ")
	local ids: { string } = {}
	for _, point in vars.points do
		table.insert(ids, point.id)
	end
	local value = app.ask_model_or_raise(self, {
		prompt = "answer",
		vars = vars,
		schema = answer_schema(self, ids, options),
		check = function(value: any): string?
			return rejection_fault(self, value)
		end,
		persona = self.moderator,
		label = "Drawing it together",
		purpose = "council",
		temperature = 0.2,
	})
	local function list(items: { any }, text: (item: any) -> string): { Point }
		local found: { Point } = json.array({} :: { Point })
		for _, item in items do
			table.insert(found, { text = text(item), from = sources_of(self, item.from) })
		end
		return found
	end
	local function line_of(item: any): string
		return app.to_line(item.text)
	end
	local decision = app.to_line(value.decision.text)
	local assumptions = stated_assumptions(self)
	for _, item in list(value.assumptions, line_of) do
		table.insert(assumptions, item)
	end
	app.record_event(self, "proposed", {
		decision = {
			decision = { text = decision, from = sources_of(self, value.decision.from) },
			option = value.option,
			confidence = agreement.confidence(history[#history], value.option),
			tradeoffs = list(value.tradeoffs, line_of),
			assumptions = assumptions,
			rejected = list(value.rejected, function(item: any): string
				return `{item.option}, {app.option_text(self, item.option)}: {app.to_line(item.why)}`
			end),
			nextSteps = list(value.next_steps, line_of),
			minorityReports = minority_reports(self, value.option, decision),
		},
	})
end

local function confidence_line(self: app.App, confidence: number): string
	local cycles = self.doc.debateCycles
	return `Confidence {confidence} of 100; {OUTCOME_TEXTS[self.doc.metadata.outcome]}, after {cycles} cycle{if cycles == 1 then "" else "s"}.`
end

--- Returns the answer as text. Without `names` nobody is named, and dissent is left out.
function answer.render(self: app.App, names: boolean): string
	local numbers: { [string]: number } = {}
	for _, turn in self.doc.messageTurns do
		numbers[turn.turnId] = turn.sequenceNumber
	end
	local function point_vars(point: Point): any
		local who: { string } = {}
		for _, source in point.from do
			table.insert(who, `{source.name} #{numbers[source.turnId]}`)
		end
		return { text = point.text, who = if names then table.concat(who, ", ") else "" }
	end
	local function list(items: { Point }): { any }
		local found: { any } = {}
		for _, item in items do
			table.insert(found, point_vars(item))
		end
		return found
	end
	local made = self.doc.metadata.decision
	return template.render("./screens/answer.md", {
		decision = point_vars(made.decision),
		option = `{made.option}: {app.option_text(self, made.option)}`,
		standing = if names then confidence_line(self, made.confidence) else "",
		tradeoffs = list(made.tradeoffs),
		assumptions = list(made.assumptions),
		rejected = list(made.rejected),
		next_steps = list(made.nextSteps),
		minority = if names then list(made.minorityReports) else {},
	})
end

--- Makes the proposal the session's final answer.
function answer.finalize(self: app.App)
	app.record_turn(self, {
		sender = app.participant_of(self, self.moderator.name),
		recipient = session.user(self.doc),
		messageType = "conclusion",
		content = answer.render(self, true),
		number = self.doc.debateCycles,
		metadata = { final = true },
	})
	app.record_event(self, "status", { status = "completed" })
end

--- Shows the proposal.
function answer.show(self: app.App)
	ui.say(answer.render(self, true))
end

return answer
