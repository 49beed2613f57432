--!strict
--- Was the council worth it? The same number of tokens is spent on independent answers of one model, which that model merges;
--- then a judge who does not know which answer is which compares the two, in both orders.

local answer = require("./answer")
local app = require("./app")
local ask = require("../common/ask")
local llm = require("@nietz/llm")
local shape = require("../common/shape")
local task = require("@nietz/task")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local control = {}

--- The most independent answers, however many tokens there are.
local MAX_ANSWERS = 24

local function line_shape(most: number): shape.Shape
	return shape.text(3, most)
end

local ANSWER_SCHEMA = shape.object({ "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }, {
	assumptions = shape.list(line_shape(200), 0, 4),
	decision = line_shape(300),
	next_steps = shape.list(line_shape(200), 1, 5),
	rejected = shape.list(line_shape(240), 1, 4),
	tradeoffs = shape.list(line_shape(240), 1, 4),
})

local JUDGEMENT_SCHEMA = shape.object(
	{ "because", "better" },
	{ because = line_shape(400), better = { enum = { "first", "second", "equal" } } }
)

--- What a call of the control arm cost.
type Cost = { input: number, output: number }

local function independent_answer(self: app.App): (any, Cost)
	local value, reply = app.ask_model_or_raise(self, {
		prompt = "control",
		vars = app.prompt_vars(self),
		schema = ANSWER_SCHEMA,
		label = "An answer without a council",
		purpose = "control",
		temperature = 0.9,
	})
	return value, reply.usage
end

--- Returns how many more answers a budget of tokens allows, by the cost of the first. Pure.
function control.affordable_answers(budget: number, first: Cost): number
	local each = first.input + first.output
	-- Each further answer is written once and read once; the merging call also reads the prompt and writes an answer.
	local left = budget - each - (each + first.output)
	return math.clamp(math.floor(left / (each + first.output)), 0, MAX_ANSWERS - 1)
end

local function render(value: any): string
	local function list(items: { string }): { any }
		local found: { any } = {}
		for _, item in items do
			table.insert(found, { text = app.to_line(item), who = "" })
		end
		return found
	end
	return template.render("./screens/answer.md", {
		decision = { text = app.to_line(value.decision), who = "" },
		option = "",
		standing = "",
		tradeoffs = list(value.tradeoffs),
		assumptions = list(value.assumptions),
		rejected = list(value.rejected),
		next_steps = list(value.next_steps),
		minority = {},
	})
end

--- Returns the control arm's answer, and how many independent answers it was merged from.
local function control_answer(self: app.App, budget: number): (any, number)
	local first, cost = independent_answer(self)
	local all: { any } = { first }
	local branches: { [string]: () -> any } = {}
	for index = 1, control.affordable_answers(budget, cost) do
		branches[string.format("answer-%02d", index)] = function(): any
			-- Where one answer cannot be used, the others count.
			local value = ask.try(function(): (any, Cost)
				return independent_answer(self)
			end)
			return value or false
		end
	end
	local found = task.all(branches)
	local names: { string } = {}
	for name in found do
		table.insert(names, name)
	end
	table.sort(names)
	for _, name in names do
		if found[name] then
			table.insert(all, found[name])
		end
	end
	if #all == 1 then
		return first, 1
	end
	local vars = app.prompt_vars(self)
	vars.answers = {}
	for _, value in all do
		table.insert(vars.answers, render(value))
	end
	local merged = app.ask_model_or_raise(self, {
		prompt = "merge",
		vars = vars,
		schema = ANSWER_SCHEMA,
		label = "The best of those answers",
		purpose = "control",
		temperature = 0.2,
	})
	return merged, #all
end

--- Returns the judge's reasons, and which answer it prefers: `first`, `second` or `equal`.
local function ask_judge(self: app.App, first: string, second: string): any
	local vars = app.prompt_vars(self)
	vars.first, vars.second = first, second
	return (
		app.ask_model_or_raise(self, {
			prompt = "judge",
			vars = vars,
			schema = JUDGEMENT_SCHEMA,
			label = "A blind judge",
			purpose = "judge",
			temperature = 0,
			model = self.params.judge,
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

local VERDICT_TEXTS: { [string]: string } = {
	council = "**Yes, by this judge.** It preferred the council's answer in both orders.",
	control = "**No, by this judge.** It preferred the answer that one model gave without a council, in both orders.",
	equal = "**Not by this judge.** It found both equally good, in both orders.",
	undecided = "**Not shown.** The judge did not prefer the same answer when their order was swapped.",
}

--- Runs the control arm, and shows and records what the judge said of both answers.
function control.run(self: app.App)
	local budget = self.tokens.council or 0
	ui.say(`### Control: {budget} tokens for one model without a council`)
	local value, count = ask.try(function(): (any, number)
		return control_answer(self, budget)
	end)
	if count == nil then
		ui.say("The model gave no usable answer without a council: nothing can be compared.")
		app.record_event(self, "failure", { code = "reply-invalid", who = "control" })
		return
	end
	local ours, theirs = answer.render(self, false), render(value)
	local both = task.all({
		forward = function(): any
			return ask_judge(self, ours, theirs)
		end,
		swapped = function(): any
			return ask_judge(self, theirs, ours)
		end,
	})
	local verdict = control.verdict(both.forward.better, both.swapped.better)
	app.record_event(self, "control", {
		report = {
			verdict = verdict,
			answers = count,
			answer = theirs,
			tokens = { council = budget, control = self.tokens.control, judge = self.tokens.judge },
			model = llm.model(),
			judge = llm.model(self.params.judge),
			councilFirst = both.forward,
			controlFirst = both.swapped,
		},
	})
	ui.say(table.concat({
		"### Was the council worth it?",
		"",
		VERDICT_TEXTS[verdict],
		"",
		`- The council used {budget} tokens; the control used {self.tokens.control} for {count} independent answer{if count == 1
			then ""
			else "s"}; judging took {self.tokens.judge}.`,
		`- Council's answer first: "{both.forward.better}". {app.to_line(both.forward.because)}`,
		`- Council's answer second: "{both.swapped.better}". {app.to_line(both.swapped.because)}`,
		"- Both were shown without names and without minority reports, which the control cannot have.",
		"- One question and one judge are a hint, not a proof.",
		"",
		"The control's answer:",
		"",
		theirs,
	}, "\n"))
end

return control
