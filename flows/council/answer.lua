--!strict
--- The answer: the option with the most support by the figures of the debate, its trade-offs, its assumptions, what was
--- rejected and why, next steps, and who disagrees. Each point names who said it, and in which turn. Where nobody stands for an
--- option, that there is no decision, and what would decide it.

local agreement = require("./agreement")
local app = require("./app")
local composed = require("./composed")
local dissent = require("./dissent")
local json = require("@nietz/json")
local known = require("./known")
local list = require("../common/list")
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

--- Returns the options that may be chosen: the one with the most confidence behind it, or those that share that place.
local function eligible_options(self: app.App): { string }
	local last = last_measure(self)
	local most = 0
	for _, percent in last.support do
		most = math.max(most, percent)
	end
	local found: { string } = {}
	for _, option in app.open_options(self) do
		if last.leading == option.id or (last.leading == nil and (most == 0 or last.support[option.id] == most)) then
			table.insert(found, option.id)
		end
	end
	return found
end

--- Returns the options of which the answer says why they are not taken.
local function rejectable(self: app.App, eligible: { string }): { string }
	local others: { string } = {}
	for _, option in app.open_options(self) do
		if #eligible > 1 or option.id ~= eligible[1] then
			table.insert(others, option.id)
		end
	end
	return others
end

--- Returns a function that makes the schema of a line with the ids that it rests on (`from`).
local function line_shape(ids: { string }, is_small: boolean): (names: { string }, extra: session.Values) -> shape.Shape
	local from = if is_small then shape.list({ enum = ids }, 1, 3) else shape.list(shape.text(2, 8), 1, 4)
	return function(names: { string }, extra: session.Values): shape.Shape
		local order, properties = table.clone(names), table.clone(extra)
		table.insert(order, "from")
		properties.from = from
		return shape.object(order, properties)
	end
end

local TAKEN_BACK = shape.list(shape.object({ "quote", "by" }, { quote = shape.text(2), by = shape.text(2) }), 0, 60)
local KNOWN = shape.list(shape.object({ "text", "quote" }, { quote = shape.text(0), text = shape.text(2) }), 0, 120)

local function answer_schema(self: app.App, ids: { string }, options: { string }, is_small: boolean): shape.Shape
	local with_sources = line_shape(ids, is_small)
	local function text(letters: number): shape.Shape
		return with_sources({ "text" }, { text = shape.text(3, small.most(is_small, letters)) })
	end
	local others = rejectable(self, options)
	local why = shape.text(3, small.most(is_small, 240))
	local rejected = with_sources({ "option", "why" }, { option = { enum = others }, why = why })
	local order = { "option", "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }
	local members: { [string]: shape.Shape } = {
		assumptions = shape.list(text(200), 0, 4),
		decision = text(300),
		next_steps = shape.list(text(200), 1, if is_small then 5 else 6),
		option = { enum = options },
		rejected = shape.list(rejected, if #others > 0 then 1 else 0, #others),
		tradeoffs = shape.list(text(240), 1, 4),
	}
	if not is_small then
		order = {
			"taken_back",
			"known",
			"option",
			"decision",
			"reasons",
			"tradeoffs",
			"risks",
			"assumptions",
			"rejected",
			"open",
			"next_steps",
		}
		members.taken_back, members.known = TAKEN_BACK, KNOWN
		members.reasons = shape.list(text(0), 1, 4)
		members.risks = shape.list(text(0), 0, 4)
		members.open = shape.list(text(0), 0, 4)
	end
	return shape.object(order, members)
end

--- Returns what is wrong with the rejected options, or nil: each option that is not chosen must be there once.
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
	for _, option in app.open_options(self) do
		if option.id ~= value.option and not seen[option.id] then
			return `say in rejected why option {option.id} is not taken`
		end
	end
	return nil
end

--- Returns what is wrong with the ids of a large mind's answer, or nil.
local function sources_fault(self: app.App, value: app.Values): string?
	local fault: string? = nil
	local function look(field: string, item: app.Values)
		fault = fault or sources.fault(self, field, item.from)
	end
	for field, part in value do
		if type(part) == "table" and part.from ~= nil then
			look(field, part)
		elseif type(part) == "table" and field ~= "taken_back" and field ~= "known" then
			for _, item in part do
				look(field, item)
			end
		end
	end
	return fault
end

--- Returns the assumptions that stand for skipped questions, each with the turn that stated it.
function answer.stated_assumptions(self: app.App): { sources.Point }
	local found: { sources.Point } = json.array({} :: { sources.Point })
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
		check = function(value: app.Values): string?
			return check(value) or (if is_small then nil else sources_fault(self, value))
		end,
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
		table.insert(found, sources.point(self, app.to_line(item.text), item.from))
	end
	return found
end

--- Returns how an option is carried, in words.
local function standing_of(self: app.App): string
	return agreement.summary(last_measure(self), self.doc.metadata.options, self.t)
end

--- Writes down that nothing was decided. Returns the decision, or nil where the moderator's reply cannot be used.
local function write_undecided(self: app.App): session.Decision?
	local value, made = ask_moderator(
		self,
		"undecided",
		{ outcome = self.t(`outcome.{self.doc.metadata.outcome}`) },
		function(is_small, ids)
			local line = line_shape(ids, is_small)
			local text = line({ "text" }, { text = shape.text(3, small.most(is_small, 240)) })
			local order = { "because", "would_decide", "next_steps" }
			local members: { [string]: shape.Shape } =
				{ because = text, would_decide = shape.list(text, 1, 5), next_steps = shape.list(text, 1, 4) }
			if not is_small then
				order = { "taken_back", "known", "because", "would_decide", "next_steps" }
				members.taken_back, members.known = TAKEN_BACK, KNOWN
			end
			return shape.object(order, members)
		end,
		function(): string?
			return nil
		end
	)
	if value == nil then
		return nil
	end
	known.take_back(self, value.taken_back or {})
	local none: session.Decision = {
		decision = sources.point(self, app.to_line(value.because.text), value.because.from),
		option = agreement.UNDECIDED,
		known = value.known,
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
		eligible = table.concat(options, " or "),
		recommended = recommended,
	}
	local value, made = ask_moderator(self, "answer", vars, function(is_small, ids)
		return answer_schema(self, ids, options, is_small)
	end, function(value: app.Values): string?
		return rejection_fault(self, value)
	end)
	if value == nil then
		return nil
	end
	known.take_back(self, value.taken_back or {})
	local rejected: { sources.Point } = json.array({} :: { sources.Point })
	for _, item in value.rejected do
		local text = `{item.option}, {string.gsub(app.option_text(self, item.option), "%.$", "")}: {app.to_line(item.why)}`
		table.insert(rejected, sources.point(self, text, item.from))
	end
	local decided: session.Decision = {
		decision = sources.point(self, app.to_line(value.decision.text), value.decision.from),
		option = value.option,
		known = value.known,
		reasons = if value.reasons then points_of(self, value.reasons) else nil,
		tradeoffs = points_of(self, value.tradeoffs),
		risks = if value.risks then points_of(self, value.risks) else nil,
		assumptions = points_of(self, value.assumptions),
		rejected = rejected,
		open = if value.open then points_of(self, value.open) else nil,
		nextSteps = points_of(self, value.next_steps),
		made = made,
	}
	return decided
end

--- Sums up the debate and records the answer as a proposal. Where the moderator's reply cannot be used, the answer is composed
--- from the positions and from what was said, and says so: a bad reply loses no council.
function answer.propose(self: app.App)
	local last = last_measure(self)
	local made: session.Decision
	if agreement.is_undecided(last) then
		made = write_undecided(self) or composed.undecided(self)
	else
		local options = eligible_options(self)
		made = write_decision(self, options) or composed.decision(self, options[1], last)
	end
	if made.composed then
		ui.say(self.t("answer.composed"))
	end
	local assumptions = answer.stated_assumptions(self)
	for _, item in made.assumptions or {} :: { session.Point } do
		table.insert(assumptions, item)
	end
	made.assumptions = assumptions
	made.known = known.facts(self, made.known or {})
	local values: app.Values = made
	for _, part in { "tradeoffs", "rejected", "nextSteps" } do
		values[part] = values[part] or json.array({})
	end
	local carried = agreement.carried(last, made.option)
	made.confidence, made.carried = carried.confidence, carried
	made.minorityReports, made.carriedAllTheSame = dissent.reports(self, last, made)
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
		content = screens.answer(self, true),
		number = self.doc.debateCycles,
		metadata = { final = true, model = by.model, latencySeconds = by.latencySeconds },
	})
	app.record_event(self, "status", { status = "completed" })
end

--- Shows the proposal.
function answer.show(self: app.App)
	ui.say(screens.answer(self, true))
end

return answer
