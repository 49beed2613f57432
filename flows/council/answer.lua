--!strict
--- The answer: the option with the most support by the figures of the debate, written for the person who asked. A moderator writes it,
--- reviewers look through it, it is mended once, and what still is missing or wrong the host places or takes out. Which turns a line
--- rests on is kept with it. Where nobody stands for an option, that there is no decision, and what would decide it.

local agreement = require("./agreement")
local app = require("./app")
local composed = require("./composed")
local dissent = require("./dissent")
local draft = require("./draft")
local json = require("@nietz/json")
local known = require("./known")
local list = require("../common/list")
local mend = require("./mend")
local persona_turns = require("./persona_turns")
local screens = require("./screens")
local session = require("./session")
local shape = require("../common/shape")
local small = require("./small")
local sources = require("./sources")
local ui = require("@nietz/ui")

local answer = {}

local function last_measure(self: app.App): agreement.Measure
	local history = self.doc.metadata.measures
	return history[#history]
end

--- Options with so many percent less behind them than the first are as good as it: the writer takes one of them.
local NEAR = 10

--- Returns the options that may be chosen: the one with the most confidence behind it, and those that come near to it.
local function eligible_options(self: app.App): { string }
	local last = last_measure(self)
	local most = 0
	for _, percent in last.support do
		most = math.max(most, percent)
	end
	local found: { string } = {}
	for _, option in app.open_options(self) do
		local percent = last.support[option.id] or 0
		if most == 0 or (percent > 0 and percent >= most - NEAR) then
			table.insert(found, option.id)
		end
	end
	table.sort(found, function(one, other): boolean
		local first, second = last.support[one] or 0, last.support[other] or 0
		return if first == second then one < other else first > second
	end)
	return found
end

--- Returns the options of which the answer may say why they are not taken: a large mind may also name those that are gone, but for
--- those that were made one with another.
local function rejectable(self: app.App, eligible: { string }, is_small: boolean): { string }
	local others: { string } = {}
	for _, option in self.doc.metadata.options do
		local is_there = not option.gone or (not is_small and option.into == nil)
		if is_there and (#eligible > 1 or option.id ~= eligible[1]) then
			table.insert(others, option.id)
		end
	end
	return others
end

--- Returns a function that makes the schema of a line with the ids that it rests on (`from`).
local function line_shape(ids: { string }, is_small: boolean): (names: { string }, extra: session.Values) -> shape.Shape
	local from = if is_small then shape.list({ enum = ids }, 1, 3) else shape.list(shape.text(2, 8), 0, 3)
	return function(names: { string }, extra: session.Values): shape.Shape
		local order, properties = table.clone(names), table.clone(extra)
		table.insert(order, "from")
		properties.from = from
		return shape.object(order, properties)
	end
end

local RESTS_ON = shape.list(shape.text(2), 0, 120)

--- Returns the schema of a decision: what is thought first comes first, what only remains comes last.
local function decision_schema(self: app.App, ids: { string }, options: { string }, is_small: boolean): shape.Shape
	local with_sources = line_shape(ids, is_small)
	local function line(letters: number): shape.Shape
		return with_sources({ "text" }, { text = shape.text(3, small.most(is_small, letters)) })
	end
	local others = rejectable(self, options, is_small)
	local why = shape.text(3, small.most(is_small, 240))
	local rejected = with_sources({ "option", "why" }, { option = { enum = others }, why = why })
	local labelled = with_sources({ "label", "text" }, { label = shape.text(2), text = shape.text(2) })
	local order = { "option", "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }
	local members: { [string]: shape.Shape } = {
		assumptions = shape.list(line(200), 0, if is_small then 4 else 3),
		decision = line(300),
		next_steps = shape.list(line(200), 1, if is_small then 5 else 7),
		option = { enum = options },
		rejected = shape.list(rejected, 0, #others),
		tradeoffs = shape.list(line(240), 1, if is_small then 4 else 6),
	}
	if not is_small then
		-- What is read first is written when all else is known.
		order = {
			"taken_back",
			"option",
			"reasons",
			"sinks",
			"tradeoffs",
			"rejected",
			"disputed",
			"assumptions",
			"open",
			"next_steps",
			"context",
			"decision",
			"glance",
			"rests_on",
			"figures",
		}
		members.taken_back, members.rests_on, members.figures = known.TAKEN_BACK, RESTS_ON, mend.FIGURES
		members.reasons = shape.list(line(0), 1, 6)
		members.sinks = shape.list(line(0), 1, 3)
		members.disputed = shape.list(labelled, 0, 3)
		members.context = line(0)
		members.glance = shape.list(labelled, 3, 6)
		members.open = shape.list(line(0), 0, 5)
	end
	return shape.object(order, members)
end

--- Returns what is wrong with the rejected options, or nil: each option that is not chosen, and does not live on in
--- it, must be there once.
local function rejection_fault(self: app.App, value: app.Values): string?
	local seen: { [string]: boolean } = {}
	for _, item in value.rejected do
		if item.option == value.option then
			return `option {item.option} is decided for, and cannot be rejected`
		elseif seen[item.option] then
			return `option {item.option} is rejected twice`
		end
		seen[item.option] = true
	end
	local chosen = list.find(self.doc.metadata.options, function(option): boolean
		return option.id == value.option
	end)
	local parts: { string } = if chosen then chosen.from or {} else {}
	for _, option in app.open_options(self) do
		local lives_on = table.find(parts, option.id) ~= nil
		if option.id ~= value.option and not seen[option.id] and not lives_on then
			return `say in rejected why option {option.id} is not taken`
		end
	end
	return nil
end

--- Returns the assumptions that stand for skipped questions, each with the turn that stated it. Nothing is assumed in place of a question
--- that was left for later, or that has no default: such a one is open.
function answer.stated_assumptions(self: app.App): { sources.Point }
	local found: { sources.Point } = json.array({} :: { sources.Point })
	for _, assumption in self.doc.assumptionLog do
		local question = session.question(self.doc, assumption.relatedQuestion)
		if question == nil or question.status ~= "skipped" or question.suggestedDefault == nil then
			continue
		end
		for _, turn in self.doc.messageTurns do
			if turn.messageType == "assumption_statement" and turn.metadata.assumptionId == assumption.assumptionId then
				local source = { { name = turn.sender.name, turnId = turn.turnId } }
				table.insert(found, { text = assumption.assumption, from = json.array(source) })
			end
		end
	end
	return found
end

--- Asks the moderator, and returns what it wrote and by which model; nil where that cannot be used.
local function ask_moderator(
	self: app.App,
	prompt: string,
	vars: app.Values,
	schema: (is_small: boolean, ids: { string }) -> shape.Shape,
	check: (value: app.Values) -> string?
): (app.Values?, app.Made?)
	local is_small = app.is_small(self, self.moderator)
	local points = if is_small then small.recent_points(self) else self.points
	local ids = list.map(points, function(point: app.Point): string
		return point.id
	end)
	local all = vars
	if is_small then
		all = small.case_vars(self)
		for name, value in vars do
			all[name] = value
		end
		all.points = points
	end
	return app.ask_model(self, {
		prompt = prompt,
		vars = all,
		schema = schema(is_small, ids),
		check = check,
		persona = self.moderator,
		label = self.t("label.answer"),
		purpose = "council",
		temperature = 0.2,
		small = is_small,
		looks = true,
	})
end

local function points_of(self: app.App, items: { app.Values }?): { sources.Point }
	local found: { sources.Point } = json.array({} :: { sources.Point })
	for _, item in items or {} :: { app.Values } do
		local point = sources.point(self, app.to_line(item.text), item.from)
		point.label = if item.label ~= nil then app.to_line(item.label) else nil
		table.insert(found, point)
	end
	return found
end

--- Returns these points where a writer was asked for them; nil where there are none.
local function some_points(self: app.App, items: { app.Values }?): { sources.Point }?
	return if items ~= nil and #items > 0 then points_of(self, items) else nil
end

--- Returns how an option is carried, in words.
local function standing_of(self: app.App): string
	return agreement.summary(last_measure(self), self.doc.metadata.options, self.t)
end

--- Returns what a large mind's answer rests on beside its lines.
local function rests_on(value: app.Values): { session.Fact }
	local found: { session.Fact } = json.array({} :: { session.Fact })
	for _, line in value.rests_on or {} :: { string } do
		table.insert(found, { text = app.to_line(line) })
	end
	return found
end

--- Writes down that nothing was decided. Returns the decision, or nil where the moderator's reply cannot be used.
local function write_undecided(self: app.App): session.Decision?
	local vars = { outcome = self.t(`outcome.{self.doc.metadata.outcome}`) }
	local value, made = ask_moderator(self, "undecided", vars, function(is_small, ids)
		local line = line_shape(ids, is_small)
		local text = line({ "text" }, { text = shape.text(3, small.most(is_small, 240)) })
		local order = { "because", "would_decide", "next_steps" }
		local members: { [string]: shape.Shape } =
			{ because = text, would_decide = shape.list(text, 1, 5), next_steps = shape.list(text, 1, 4) }
		if not is_small then
			order = { "taken_back", "because", "would_decide", "next_steps", "rests_on", "figures" }
			members.taken_back, members.rests_on, members.figures = known.TAKEN_BACK, RESTS_ON, mend.FIGURES
		end
		return shape.object(order, members)
	end, function(): string?
		return nil
	end)
	if value == nil then
		return nil
	end
	known.take_back(self, value.taken_back or {})
	local none: session.Decision = {
		decision = sources.point(self, app.to_line(value.because.text), value.because.from),
		option = agreement.UNDECIDED,
		known = rests_on(value),
		figures = mend.own_figures(value.figures or {}),
		open = points_of(self, value.would_decide),
		nextSteps = points_of(self, value.next_steps),
		made = made,
	}
	return none
end

--- Writes down what was decided. Returns the decision, or nil where the moderator's reply cannot be used.
local function write_decision(self: app.App, options: { string }): session.Decision?
	local recommended: { string } = {}
	for _, position in last_measure(self).positions do
		local turn = persona_turns.last_turn(self, position.name)
		if table.find(options, position.option) ~= nil and turn ~= nil then
			table.insert(recommended, `{position.name}: {turn.metadata.recommends}`)
		end
	end
	local vars = {
		outcome = self.t(`outcome.{self.doc.metadata.outcome}`),
		standing = standing_of(self),
		eligible = table.concat(
			list.map(options, function(id): string
				return `{id} ("{app.option_name(self, id)}")`
			end),
			" or "
		),
		recommended = recommended,
	}
	local value, made = ask_moderator(self, "answer", vars, function(is_small, ids)
		return decision_schema(self, ids, options, is_small)
	end, function(value: app.Values): string?
		return rejection_fault(self, value)
	end)
	if value == nil then
		return nil
	end
	known.take_back(self, value.taken_back or {})
	local rejected: { sources.Point } = json.array({} :: { sources.Point })
	for _, item in value.rejected do
		local point = sources.point(self, app.to_line(item.why), item.from)
		point.option = item.option
		table.insert(rejected, point)
	end
	local decided: session.Decision = {
		decision = sources.point(self, app.to_line(value.decision.text), value.decision.from),
		option = value.option,
		known = rests_on(value),
		figures = mend.own_figures(value.figures or {}),
		glance = some_points(self, value.glance),
		sinks = some_points(self, value.sinks),
		context = if value.context then points_of(self, { value.context }) else nil,
		disputed = some_points(self, value.disputed),
		reasons = some_points(self, value.reasons),
		tradeoffs = points_of(self, value.tradeoffs),
		assumptions = points_of(self, value.assumptions),
		rejected = rejected,
		open = some_points(self, value.open),
		nextSteps = points_of(self, value.next_steps),
		made = made,
	}
	return decided
end

--- Makes an answer whole that no large mind wrote: what was assumed, what is open, and all that the user said, in their words.
local function fill(self: app.App, made: session.Decision)
	local assumptions = answer.stated_assumptions(self)
	for _, item in made.assumptions or {} :: { session.Point } do
		table.insert(assumptions, item)
	end
	made.assumptions = assumptions
	local open: { session.Point } = table.clone(made.open or {} :: { session.Point })
	for _, left in draft.left_questions(self) do
		if left.part == "open" then
			table.insert(open, { text = left.text, from = made.decision.from })
		end
	end
	made.open = if #open > 0 then json.array(open) else nil
	made.known = json.array(known.in_their_words(self, known.missing(self, {})))
end

--- Sums up the debate and records the answer as a proposal. Where the moderator's reply cannot be used, the answer is composed
--- from the positions and from what was said, and says so: a bad reply loses no council.
function answer.propose(self: app.App)
	local last = last_measure(self)
	local written: session.Decision?
	local options: { string } = {}
	if agreement.is_undecided(last) then
		written = write_undecided(self)
	else
		options = eligible_options(self)
		written = write_decision(self, options)
	end
	local made: session.Decision = written
		or (if #options == 0 then composed.undecided(self) else composed.decision(self, options[1], last))
	local is_written = written ~= nil and not app.is_small(self, self.moderator)
	if made.composed then
		ui.say(self.t("answer.composed"))
	end
	if not is_written then
		fill(self, made)
	end
	app.tell(self, `# The answer as it would go out\n\n{draft.told(self, made)}`)
	local review = dissent.review(self, last, made)
	if is_written then
		draft.close(self, made, mend.once(self, made, review.holes))
	else
		mend.leave_open(made, review.holes)
	end
	local values: app.Values = made :: any
	for _, part in { "tradeoffs", "rejected", "nextSteps", "assumptions" } do
		values[part] = values[part] or json.array({})
	end
	made.figures = if #(made.figures or {}) > 0 then made.figures else nil
	local carried = agreement.carried(last, made.option)
	made.confidence, made.carried = carried.confidence, carried
	made.minorityReports, made.carriedAllTheSame = review.reports, review.carried
	app.record_event(self, "proposed", { decision = made })
end

--- Makes the proposal the session's final answer: everybody's last position, then the answer.
function answer.finalize(self: app.App)
	local made = self.doc.metadata.decision
	dissent.conclude(self, last_measure(self), made)
	app.record_event(self, "status", { status = "final" })
	local by: session.Made = made.made or {}
	app.record_turn(self, {
		sender = app.participant_of(self, self.moderator.name),
		recipient = session.user(self.doc),
		messageType = "conclusion",
		content = screens.answer(self),
		number = self.doc.debateCycles,
		metadata = { final = true, model = by.model, latencySeconds = by.latencySeconds },
	})
	app.record_event(self, "status", { status = "completed" })
end

--- Shows the proposal.
function answer.show(self: app.App)
	ui.say(screens.answer(self))
end

return answer
