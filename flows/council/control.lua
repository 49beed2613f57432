--!strict
--- Was the council worth it? One model gets the same case, facts and remarks and as many tokens, for independent answers which it
--- merges; and the plain arm is one good prompt. A judge who sees neither names nor letters nor who argued compares the council's
--- answer with each of them, in both orders.

local app = require("./app")
local ask = require("../common/ask")
local failure = require("../common/failure")
local llm = require("@nietz/llm")
local plain = require("./plain")
local screens = require("./screens")
local shape = require("../common/shape")
local small = require("./small")
local task = require("@nietz/task")
local ui = require("@nietz/ui")
local worth = require("./worth")

local control = {}

--- The most independent answers, however many tokens there are.
local MAX_ANSWERS = 24
--- What a judge scores, each from 0 to 10.
control.RUBRIC = { "grounded", "decisive", "risks", "dissent", "next_step" }

--- What a call of the control arm cost; `read` is what its answer takes where it is read, if that is not what was written.
type Cost = { input: number, output: number, read: number? }
--- Two answers compared in both orders.
export type Comparison = { verdict: string, councilFirst: app.Values, otherFirst: app.Values }

local function judgement_schema(is_small: boolean): shape.Shape
	local because = shape.text(3, small.most(is_small, 400))
	local better = { enum = { "first", "second", "equal" } }
	if is_small then
		return shape.object({ "because", "better" }, { because = because, better = better })
	end
	local members: { [string]: shape.Shape } = {}
	for _, name in control.RUBRIC do
		members[name] = shape.integer(0, 10)
	end
	local scores = shape.object(control.RUBRIC, members)
	return shape.object({ "first", "second", "because", "better" }, { first = scores, second = scores, because = because, better = better })
end

--- Returns how many more answers a budget of tokens allows, by the cost of the first. Pure.
function control.affordable_answers(budget: number, first: Cost): number
	local each = first.input + first.output
	-- Each further answer is written once and read once; the merging call also reads the prompt and writes an answer.
	local read = math.max(first.output, first.read or 0)
	local left = budget - each - (each + read)
	return math.clamp(math.floor(left / (each + read)), 0, MAX_ANSWERS - 1)
end

--- Returns the control arm's answer, and how many independent answers it was merged from.
local function control_answer(self: app.App, budget: number): (app.Values?, number)
	local first = plain.answer(self, "control", 0.9)
	local spent = self.spent.control
	local all: { app.Values } = { first }
	local read = llm.count(screens.anonymous(self.t, first))
	local cost = { input = spent.input, output = spent.output, read = read }
	local branches: { [string]: () -> { value: app.Values? } } = {}
	for index = 1, control.affordable_answers(budget, cost) do
		branches[string.format("answer-%02d", index)] = function(): { value: app.Values? }
			-- Where one answer cannot be used, the others count.
			return {
				value = ask.try(function(): (app.Values, nil)
					return plain.answer(self, "control", 0.9), nil
				end),
			}
		end
	end
	local found = task.all(branches)
	local names: { string } = {}
	for name in found do
		table.insert(names, name)
	end
	table.sort(names)
	for _, name in names do
		local value = found[name].value
		if value ~= nil then
			table.insert(all, value)
		end
	end
	if #all == 1 then
		return first, 1
	end
	return plain.merge(self, all), #all
end

--- Returns the judge's reasons, and which answer it prefers: `first`, `second` or `equal`.
local function ask_judge(self: app.App, first: string, second: string): app.Values
	local is_small = app.is_small(self, nil, self.params.judge)
	local vars: app.Values = if is_small then small.case_vars(self) else { case = plain.case(self) }
	vars.first, vars.second = first, second
	return (
		app.ask_model_or_raise(self, {
			prompt = "judge",
			vars = vars,
			schema = judgement_schema(is_small),
			label = self.t("label.judge"),
			purpose = "judge",
			temperature = 0,
			model = self.params.judge,
			small = is_small,
		})
	)
end

--- Returns the verdict of both orders: an arm is better only when both orders say so. Pure.
function control.verdict(forward: string, swapped: string): string
	if forward == "first" and swapped == "second" then
		return "council"
	elseif forward == "second" and swapped == "first" then
		return "control"
	elseif forward == "equal" and swapped == "equal" then
		return "equal"
	end
	return "undecided"
end

--- Compares two answers in both orders; nil where a judgement cannot be used.
local function compare(self: app.App, ours: string, theirs: string): Comparison?
	local both = task.settle({
		forward = function(): app.Values
			return ask_judge(self, ours, theirs)
		end,
		swapped = function(): app.Values
			return ask_judge(self, theirs, ours)
		end,
	})
	if not both.forward.ok or not both.swapped.ok then
		local problem = failure.of(both.forward.error or both.swapped.error)
		app.record_event(self, "failure", { code = problem.code or "flow-error", who = "judge" })
		return nil
	end
	local forward, swapped = both.forward.value :: app.Values, both.swapped.value :: app.Values
	return { verdict = control.verdict(forward.better, swapped.better), councilFirst = forward, otherFirst = swapped }
end

local function spent_text(self: app.App, purpose: string): string
	local spent = self.spent[purpose]
	if spent == nil then
		return "0"
	end
	local tokens = self.t("worth.tokens", { tokens = spent.input + spent.output })
	return if spent.cost ~= nil and spent.cost > 0 then `{tokens}, ${string.format("%.3f", spent.cost)}` else tokens
end

local function verdict_text(self: app.App, comparison: Comparison?): string
	return self.t(if comparison then `verdict.{comparison.verdict}` else "verdict.none")
end

local function say_report(self: app.App, count: number, merged: Comparison?, alone: Comparison?, theirs: string?)
	local lines = {
		self.t("worth.head"),
		"",
		self.t("worth.line", {
			control = verdict_text(self, merged),
			plain = verdict_text(self, alone),
			council = spent_text(self, "council"),
			control_cost = spent_text(self, "control"),
			plain_cost = spent_text(self, "plain"),
			judge = spent_text(self, "judge"),
		}),
		"",
	}
	local function reasons(name: string, comparison: Comparison?)
		if comparison ~= nil then
			for order, judged in { comparison.councilFirst, comparison.otherFirst } do
				table.insert(lines, `- {self.t(`worth.order{order}`, { other = name })}: "{judged.better}". {app.to_line(judged.because)}`)
			end
		end
	end
	reasons(self.t("worth.control"), merged)
	reasons(self.t("worth.plain"), alone)
	table.insert(lines, `- {self.t("worth.how", { count = count })}`)
	table.insert(lines, `- {self.t("worth.hint")}`)
	if theirs ~= nil then
		table.insert(lines, `\n{self.t("worth.their_answer")}\n\n{theirs}`)
	end
	ui.say(table.concat(lines, "\n"))
end

--- Runs an arm; nil, and that in the record, where the model gives no usable answer.
local function run_arm(self: app.App, name: string, give: () -> (app.Values?, number)): (app.Values?, number)
	local value, count = ask.try(give)
	if count == nil then
		ui.say(self.t("worth.no_answer", { arm = self.t(`worth.{name}`) }))
		app.record_event(self, "failure", { code = "reply-invalid", who = name })
	end
	return value, count or 0
end

local function compare_arms(self: app.App)
	local budget = app.tokens(self, "council")
	ui.say(self.t("worth.begin", { tokens = budget }))
	local merged_value, count = run_arm(self, "control", function(): (app.Values?, number)
		return control_answer(self, budget)
	end)
	local alone_value = run_arm(self, "plain", function(): (app.Values?, number)
		return plain.answer(self, "plain", 0.2), 1
	end)
	local ours = screens.judged(self)
	local theirs = if merged_value then screens.anonymous(self.t, merged_value) else nil
	local merged = if theirs then compare(self, ours, theirs) else nil
	local alone = if alone_value then compare(self, ours, screens.anonymous(self.t, alone_value)) else nil
	local report = {
		verdict = if merged then merged.verdict else "none",
		plainVerdict = if alone then alone.verdict else "none",
		answers = count,
		answer = theirs,
		tokens = {
			council = budget,
			control = app.tokens(self, "control"),
			plain = app.tokens(self, "plain"),
			judge = app.tokens(self, "judge"),
		},
		spent = { council = self.spent.council, control = self.spent.control, plain = self.spent.plain, judge = self.spent.judge },
		model = llm.model(),
		judge = llm.model(self.params.judge),
		councilFirst = if merged then merged.councilFirst else nil,
		controlFirst = if merged then merged.otherFirst else nil,
		plain = alone,
	}
	app.record_event(self, "control", { report = report })
	say_report(self, count, merged, alone, theirs)
	worth.keep(self.doc, report)
end

--- Runs the other arms, and shows and records what the judge said. The answer stands whatever happens here.
function control.run(self: app.App)
	local ok, raised: any = pcall(function(): any
		compare_arms(self)
		return nil
	end)
	if not ok and failure.is(raised, app.CANCELLED) then
		error(raised, 0)
	elseif not ok then
		local problem = failure.of(raised)
		app.record_event(self, "failure", { code = problem.code or "flow-error", who = "control" })
		ui.say(self.t("worth.failed", { why = problem.message }))
	end
end

return control
