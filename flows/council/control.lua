--!strict
--- Was the council worth it? The same tokens are spent on independent answers of one model, drawn together by that
--- model, and a judge who does not know which is which compares both, twice, in swapped order.

local answer = require("./answer")
local app = require("./app")
local ask = require("../common/ask")
local llm = require("@nietz/llm")
local shape = require("../common/shape")
local task = require("@nietz/task")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local control = {}

--- Not more answers than this, whatever the tokens allow.
local MOST = 24

local function line(most: number): shape.Shape
	return shape.text(3, most)
end

local SCHEMA = shape.object({ "decision", "tradeoffs", "assumptions", "rejected", "next_steps" }, {
	assumptions = shape.list(line(200), 0, 4),
	decision = line(300),
	next_steps = shape.list(line(200), 1, 5),
	rejected = shape.list(line(240), 1, 4),
	tradeoffs = shape.list(line(240), 1, 4),
})

local JUDGED = shape.object({ "because", "better" }, { because = line(400), better = { enum = { "first", "second", "equal" } } })

--- What a call of the control arm cost.
type Cost = { input: number, output: number }

local function one(self: app.App): (any, Cost)
	local value, reply = app.ask(self, {
		prompt = "control",
		vars = app.context(self),
		schema = SCHEMA,
		label = "An answer without a council",
		arm = "control",
		temperature = 0.9,
	})
	return value, reply.usage
end

--- Returns how many more answers the tokens allow, when the first cost this much and all are read once more. Pure.
function control.more(budget: number, first: Cost): number
	local each = first.input + first.output
	-- Each further answer is made once and read once; the last call also has the prompt and writes an answer.
	local left = budget - each - (each + first.output)
	return math.clamp(math.floor(left / (each + first.output)), 0, MOST - 1)
end

local function shown(value: any): string
	local function list(items: { string }): { any }
		local found: { any } = {}
		for _, item in items do
			table.insert(found, { text = app.line(item), who = "" })
		end
		return found
	end
	return template.render("./screens/answer.md", {
		decision = { text = app.line(value.decision), who = "" },
		option = "",
		standing = "",
		tradeoffs = list(value.tradeoffs),
		assumptions = list(value.assumptions),
		rejected = list(value.rejected),
		next_steps = list(value.next_steps),
		minority = {},
	})
end

--- Returns the control arm's answer and how many independent ones it was made from.
local function answers(self: app.App, budget: number): (any, number)
	local first, cost = one(self)
	local all: { any } = { first }
	local branches: { [string]: () -> any } = {}
	for index = 1, control.more(budget, cost) do
		branches[string.format("answer-%02d", index)] = function(): any
			-- One answer that cannot be used leaves the others.
			local value = ask.try(function(): (any, Cost)
				return one(self)
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
	local vars = app.context(self)
	vars.answers = {}
	for _, value in all do
		table.insert(vars.answers, shown(value))
	end
	local merged = app.ask(self, {
		prompt = "merge",
		vars = vars,
		schema = SCHEMA,
		label = "The best of those answers",
		arm = "control",
		temperature = 0.2,
	})
	return merged, #all
end

--- Returns which answer the judge prefers: `first`, `second` or `equal`.
local function judged(self: app.App, first: string, second: string): any
	local vars = app.context(self)
	vars.first, vars.second = first, second
	return (
		app.ask(self, {
			prompt = "judge",
			vars = vars,
			schema = JUDGED,
			label = "A blind judge",
			arm = "judge",
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

local SAID: { [string]: string } = {
	council = "**Yes, by this judge.** It preferred the council's answer in both orders.",
	control = "**No, by this judge.** It preferred the answer that one model gave without a council, in both orders.",
	equal = "**Not by this judge.** It found both equally good, in both orders.",
	undecided = "**Not shown.** The judge did not prefer the same answer when their order was swapped.",
}

--- Runs the control arm and says honestly what came of it.
function control.run(self: app.App)
	local budget = self.spent.council or 0
	ui.say(`### Control: {budget} tokens for one model without a council`)
	local value, count = ask.try(function(): (any, number)
		return answers(self, budget)
	end)
	if count == nil then
		ui.say("The model gave no usable answer without a council: nothing can be compared.")
		app.happen(self, "failure", { code = "reply-invalid", who = "control" })
		return
	end
	local ours, theirs = answer.text(self, false), shown(value)
	local both = task.all({
		forward = function(): any
			return judged(self, ours, theirs)
		end,
		swapped = function(): any
			return judged(self, theirs, ours)
		end,
	})
	local verdict = control.verdict(both.forward.better, both.swapped.better)
	app.happen(self, "control", {
		report = {
			verdict = verdict,
			answers = count,
			answer = theirs,
			tokens = { council = budget, control = self.spent.control, judge = self.spent.judge },
			model = llm.model(),
			judge = llm.model(self.params.judge),
			councilFirst = both.forward,
			controlFirst = both.swapped,
		},
	})
	ui.say(table.concat({
		"### Was the council worth it?",
		"",
		SAID[verdict],
		"",
		`- The council used {budget} tokens; the control used {self.spent.control} for {count} independent answer{if count == 1
			then ""
			else "s"}; judging took {self.spent.judge}.`,
		`- Council's answer first: "{both.forward.better}". {app.line(both.forward.because)}`,
		`- Council's answer second: "{both.swapped.better}". {app.line(both.swapped.because)}`,
		"- Both were shown without names and without minority reports, which the control cannot have.",
		"- One question and one judge are a hint, not a proof.",
		"",
		"The control's answer:",
		"",
		theirs,
	}, "\n"))
end

return control
