--!strict
--- The shots at a goal: one attempt, or several side by side, best first.

local attempt = require("./attempt")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local open_attempt = require("./open_attempt")
local show = require("./show")
local state = require("./state")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

local shots = {}

--- Whether one outcome is better than another: one that validates comes first, then one that came to its end, then the earlier.
local function is_better(a: open_attempt.Outcome, b: open_attempt.Outcome): boolean
	local rank = { success = 3, completed = 2 } :: { [string]: number }
	local of_a, of_b = rank[a.status] or 1, rank[b.status] or 1
	return if of_a == of_b then a.id < b.id else of_a > of_b
end

--- Returns how many shots are taken at a time: as many as `--shots` says, and at least one for each model and temperature.
function shots.count(params: nietz.Values): number
	return math.max(params.shots, #params.shot_model + 1, #params.shot_temperature)
end

--- Returns the model and the temperature of a shot: the first is by the model whose turn it is, the others are by those of
--- `--shot-model` in turn. Temperatures are taken in turn, too.
function shots.variant(params: nietz.Values, index: number, model: string): (string, number?)
	local models, temperatures = params.shot_model, params.shot_temperature
	local by = if index > 1 and #models > 0 then llm.model(models[(index - 2) % #models + 1]) else model
	return by, if #temperatures > 0 then temperatures[(index - 1) % #temperatures + 1] else nil
end

--- Has a model attempt the goal `--shots` times, side by side; returns the outcomes, best first.
function shots.take(self: state.Session, target: state.Goal, model: string, parents: { state.Goal }): { open_attempt.Outcome }
	local outcomes: { open_attempt.Outcome } = {}
	local count = shots.count(self.params)
	if count == 1 then
		outcomes = { attempt.implement(self, target, model, parents, self.params.shot_temperature[1]) }
	else
		local branches = {}
		for index = 1, count do
			local by, temperature = shots.variant(self.params, index, model)
			branches[`shot {string.format("%02d", index)}`] = function()
				return attempt.implement(self, target, by, parents, temperature)
			end
		end
		for _, outcome in task.all(branches) do
			table.insert(outcomes, outcome)
		end
	end
	table.sort(outcomes, is_better)
	for _, outcome in outcomes do
		table.insert(
			target.history,
			`Attempt {outcome.id} by {outcome.model}: {outcome.status}. {string.sub(outcome.detail, 1, 1500)} {outcome.evidence}`
		)
		ui.say(show.attempt_line(target, outcome))
	end
	return outcomes
end

return shots
