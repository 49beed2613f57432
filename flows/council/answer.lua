--!strict
--- The answer: the option with the most support by the figures of the debate, written for the person who asked. A moderator writes it as
--- one memo, reviewers and a first reader look through it, and it is written anew once with what they are right about. What each
--- statement rests on is kept with it. Where nobody stands for an option, that there is no decision, and what would decide it.

local agreement = require("./agreement")
local app = require("./app")
local composed = require("./composed")
local dissent = require("./dissent")
local document = require("../common/document")
local draft = require("./draft")
local json = require("@nietz/json")
local known = require("./known")
local list = require("../common/list")
local marked = require("../common/marked")
local mend = require("./mend")
local persona_turns = require("./persona_turns")
local plain = require("./plain")
local reader = require("./reader")
local screens = require("./screens")
local session = require("./session")
local shape = require("../common/shape")
local small = require("./small")
local sources = require("./sources")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

local answer = {}

--- What a moderator wrote; of a large mind its memo, too, with its marks.
type Written = { decision: session.Decision, memo: draft.Memo?, holes: { app.Values } }

--- What those who read it before it goes out say.
type Read = { review: dissent.Review?, read: reader.Read? }

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

--- Returns the options of which a small mind says why they are not taken.
local function rejectable(self: app.App, eligible: { string }): { string }
	local others: { string } = {}
	for _, option in self.doc.metadata.options do
		if not option.gone and (#eligible > 1 or option.id ~= eligible[1]) then
			table.insert(others, option.id)
		end
	end
	return others
end

--- Returns the schema of an answer as a large mind writes it: what it thinks of first, in short, and then the memo.
local function memo_schema(self: app.App, options: { string }?, holes: { string }): shape.Shape
	local order: { string } = {}
	local members: { [string]: shape.Shape } = {}
	local function add(name: string, member: shape.Shape)
		table.insert(order, name)
		members[name] = member
	end
	if known.is_unread(self) then
		add("taken_back", known.TAKEN_BACK)
	end
	if options ~= nil then
		local others = rejectable(self, options)
		add("option", { enum = options })
		add("against", shape.text(3))
		if #others > 0 then
			local one = shape.object({ "option", "why" }, { option = { enum = others }, why = shape.text(3) })
			add("rejected", shape.list(one, 0, #others))
		end
		add("tradeoffs", shape.list(shape.text(3), 1, 4))
		add("assumptions", shape.list(shape.text(3), 0, 4))
	end
	add("next_steps", shape.list(shape.text(3), 1, 8))
	if #holes > 0 then
		add("holes", mend.answers(holes))
	end
	add("memo", shape.text(3))
	add("decision", shape.text(3))
	add("title", shape.text(3, draft.TITLE))
	return shape.object(order, members)
end

--- Returns the schema of a decision as a small mind writes it, line by line.
local function decision_schema(self: app.App, ids: { string }, options: { string }): shape.Shape
	local from = shape.list({ enum = ids }, 1, 3)
	local function line(letters: number): shape.Shape
		return shape.object({ "text", "from" }, { text = shape.text(3, letters), from = from })
	end
	local others = rejectable(self, options)
	local rejected = shape.object({ "option", "why", "from" }, { option = { enum = others }, why = shape.text(3, 240), from = from })
	return shape.object({ "option", "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }, {
		assumptions = shape.list(line(200), 0, 4),
		decision = line(300),
		next_steps = shape.list(line(200), 1, 5),
		option = { enum = options },
		rejected = shape.list(rejected, 0, #others),
		tradeoffs = shape.list(line(240), 1, 4),
	})
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

--- Returns how an option is carried, in words.
local function standing_of(self: app.App): string
	return agreement.summary(last_measure(self), self.doc.metadata.options, self.t)
end

--- Returns lines of a large mind's as points of a decision, with what they rest on.
local function lines_of(self: app.App, lines: { string }?): { sources.Point }
	return json.array(list.map(lines or {} :: { string }, function(line: string): sources.Point
		return sources.point(self, app.to_line(marked.plain(line)), marked.cites(line))
	end))
end

--- Returns what a large mind wrote: its memo, and the decision that it is kept as.
local function written(self: app.App, value: app.Values, option: string, made: app.Made?): Written
	known.read_replaced(self, value.taken_back)
	local memo = draft.memo(value)
	local rejected: { sources.Point } = json.array({} :: { sources.Point })
	for _, item in value.rejected or {} :: { app.Values } do
		local is_told = list.some(rejected, function(point): boolean
			return point.option == item.option
		end)
		if item.option ~= option and not is_told then
			local point = sources.point(self, app.to_line(marked.plain(item.why)), marked.cites(item.why))
			point.option = item.option
			table.insert(rejected, point)
		end
	end
	local assumptions = answer.stated_assumptions(self)
	for _, point in lines_of(self, value.assumptions) do
		table.insert(assumptions, point)
	end
	local decided: session.Decision = {
		decision = { text = marked.plain(memo.decision), from = json.array({}) },
		option = option,
		against = if value.against ~= nil then app.to_line(marked.plain(value.against)) else nil,
		tradeoffs = lines_of(self, value.tradeoffs),
		assumptions = assumptions,
		rejected = rejected,
		nextSteps = lines_of(self, value.next_steps),
		made = made,
	}
	return { decision = decided, memo = memo, holes = value.holes or {} }
end

--- Writes down that nothing was decided, or nil where the moderator's reply cannot be used.
local function write_undecided(self: app.App): Written?
	local vars = { outcome = self.t(`outcome.{self.doc.metadata.outcome}`), unread = known.is_unread(self) }
	local value, made = ask_moderator(self, "undecided", vars, function(is_small, ids)
		if not is_small then
			return memo_schema(self, nil, {})
		end
		local from = shape.list({ enum = ids }, 1, 3)
		local line = shape.object({ "text", "from" }, { text = shape.text(3, 240), from = from })
		local members = { because = line, would_decide = shape.list(line, 1, 5), next_steps = shape.list(line, 1, 4) }
		return shape.object({ "because", "would_decide", "next_steps" }, members)
	end, function(): string?
		return nil
	end)
	if value == nil then
		return nil
	elseif not app.is_small(self, self.moderator) then
		return written(self, value, agreement.UNDECIDED, made)
	end
	local none: session.Decision = {
		decision = sources.point(self, app.to_line(value.because.text), value.because.from),
		option = agreement.UNDECIDED,
		open = points_of(self, value.would_decide),
		nextSteps = points_of(self, value.next_steps),
		made = made,
	}
	return { decision = none, holes = {} }
end

--- What is found in a draft: by who has read it, and by comparing it with what was said. `least` is how many words a memo that is no
--- patch has.
type Held = mend.Findings & { drafted: boolean, faults: { document.Fault }, least: number }

--- Nothing is found where there is no draft.
local NOTHING: Held = { drafted = false, least = 0, holes = {}, stumbles = {}, missed = {}, reports = {}, faults = {} }

--- Writes down what was decided, or nil where the moderator's reply cannot be used.
local function write_decision(self: app.App, options: { string }, held: Held): Written?
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
		least = draft.LEAST_WORDS,
		words = draft.WORDS,
		unread = known.is_unread(self),
		drafted = held.drafted,
		holes = held.holes,
		stumbles = held.stumbles,
		missed = held.missed,
		reports = held.reports,
		faults = held.faults,
	}
	local is_large = not app.is_small(self, self.moderator)
	local value, made = ask_moderator(self, "answer", vars, function(_, ids)
		return if is_large then memo_schema(self, options, mend.ids(held.holes)) else decision_schema(self, ids, options)
	end, function(value: app.Values): string?
		return if is_large then mend.patch_fault(value.memo, held.least) else rejection_fault(self, value)
	end)
	if value == nil then
		return nil
	elseif is_large then
		return written(self, value, value.option, made)
	end
	local rejected: { sources.Point } = json.array({} :: { sources.Point })
	for _, item in value.rejected do
		local point = sources.point(self, app.to_line(item.why), item.from)
		point.option = item.option
		table.insert(rejected, point)
	end
	local decided: session.Decision = {
		decision = sources.point(self, app.to_line(value.decision.text), value.decision.from),
		option = value.option,
		tradeoffs = points_of(self, value.tradeoffs),
		assumptions = points_of(self, value.assumptions),
		rejected = rejected,
		nextSteps = points_of(self, value.next_steps),
		made = made,
	}
	return { decision = decided, holes = {} }
end

--- Makes an answer whole that no large mind wrote: what was assumed, what is open, and all that the user said, in their words.
local function fill(self: app.App, made: session.Decision)
	local assumptions = answer.stated_assumptions(self)
	for _, item in made.assumptions or {} :: { session.Point } do
		table.insert(assumptions, item)
	end
	made.assumptions = assumptions
	draft.keep_open(self, made)
	made.known = json.array(known.in_their_words(self))
end

--- An answer, and what its reviewers said.
type Answered = { made: session.Decision, review: dissent.Review }

--- Has an answer read before it goes out, by its reviewers and by its first reader.
local function hear(self: app.App, last: agreement.Measure, made: session.Decision, memo: draft.Memo?): (dissent.Review, reader.Read?)
	local heard = task.all {
		reviewers = function(): Read
			return { review = dissent.review(self, last, made) }
		end,
		reader = function(): Read
			return { read = if memo ~= nil then reader.read(self, memo) else nil }
		end,
	}
	return heard.reviewers.review :: dissent.Review, heard.reader.read
end

--- Returns what was found in a memo by who has read it.
local function findings_of(self: app.App, review: dissent.Review, read: reader.Read?): mend.Findings
	return {
		holes = review.holes,
		stumbles = if read ~= nil then read.stumbles else {},
		missed = if read ~= nil then read.missed else {},
		reports = list.map(review.reports, function(report): { name: string, text: string }
			return { name = report.from[1].name, text = dissent.report_text(self, report) }
		end),
	}
end

--- Returns the answer that a reply makes that nobody has read yet; one that is composed where no reply can be used.
local function answer_of(self: app.App, last: agreement.Measure, options: { string }, reply: Written?): Answered
	local made: session.Decision = if reply ~= nil
		then reply.decision
		elseif #options == 0 then composed.undecided(self)
		else composed.decision(self, options[1], last)
	local memo = if reply ~= nil then reply.memo else nil
	if made.composed then
		ui.say(self.t("answer.composed"))
	end
	if memo == nil then
		fill(self, made)
	end
	app.tell(self, `# The answer as it would go out\n\n{if memo ~= nil then draft.told(memo) else composed.told(self, made)}`)
	local review, read = hear(self, last, made, memo)
	if memo ~= nil and read ~= nil then
		draft.keep(self, made, mend.once(self, made, memo, findings_of(self, review, read)), read.missed)
	else
		mend.leave_open(made, review.holes)
	end
	return { made = made, review = review }
end

--- Writes the answer where nobody drafts it: of a small mind, and where nobody stands for an option.
local function write_alone(self: app.App, last: agreement.Measure, options: { string }): Answered
	return answer_of(self, last, options, if #options == 0 then write_undecided(self) else write_decision(self, options, NOTHING))
end

--- Writes the answer of a large mind, and nil where nobody drafts it: one who heard nobody does, and with the debate, the reviewers and
--- the first reader of the draft the moderator makes the answer of it.
local function write_from_draft(self: app.App, last: agreement.Measure, options: { string }): Answered?
	local first = plain.memo(self)
	if first == nil then
		return nil
	end
	local decided = `The debate decides for {options[1]} ("{app.option_name(self, options[1])}").`
	app.tell(self, `# A first draft of the answer, by one who has heard none of you\n\n{draft.told(first)}\n\n{decided}`)
	local made: session.Decision = { decision = { text = first.decision, from = json.array({}) }, option = options[1] }
	local review, read = hear(self, last, made, first)
	local found = findings_of(self, review, read)
	local faults = draft.faults(self, first)
	mend.tell(self, found, #faults)
	local reply = write_decision(self, options, {
		drafted = true,
		holes = found.holes,
		stumbles = found.stumbles,
		missed = found.missed,
		reports = found.reports,
		faults = faults,
		least = mend.WHOLE * marked.length(first.text),
	})
	if reply == nil or reply.memo == nil then
		return answer_of(self, last, options, nil)
	end
	made = reply.decision
	mend.settle(self, made, found.holes, reply.holes)
	app.tell(self, `# The answer as it would go out\n\n{draft.told(reply.memo)}`)
	-- What the comparison finds in the memo itself goes back once.
	draft.keep(self, made, mend.once(self, made, reply.memo, NOTHING), found.missed)
	return { made = made, review = dissent.of_option(self, review, last, made.option) }
end

--- Sums up the debate and records the answer as a proposal. Where the moderator's reply cannot be used, the answer is composed
--- from the positions and from what was said, and says so: a bad reply loses no council.
function answer.propose(self: app.App)
	local last = last_measure(self)
	local options: { string } = if agreement.is_undecided(last) then {} else eligible_options(self)
	local is_drafted = #options > 0 and not app.is_small(self, self.moderator)
	local answered: Answered? = if is_drafted then write_from_draft(self, last, options) else nil
	local whole = answered or write_alone(self, last, options)
	local made, review = whole.made, whole.review
	local values: app.Values = made :: any
	for _, part in { "tradeoffs", "rejected", "nextSteps", "assumptions" } do
		values[part] = values[part] or json.array({})
	end
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

--- Shows the proposal, and what a reader of it need not know and who asked for it may.
function answer.show(self: app.App)
	ui.say(screens.answer(self))
	local notes = screens.notes(self)
	if notes ~= "" then
		ui.say(notes)
	end
end

return answer
