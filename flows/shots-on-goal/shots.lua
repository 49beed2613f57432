--!strict
--- The shots at a goal: one attempt, or several side by side, best first.

local attempt = require("./attempt")
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

--- Has a model attempt the goal `--shots` times, side by side; returns the outcomes, best first.
function shots.take(self: state.Session, target: state.Goal, model: string, parents: { state.Goal }): { open_attempt.Outcome }
	local outcomes: { open_attempt.Outcome } = {}
	if self.params.shots == 1 then
		outcomes = { attempt.implement(self, target, model, parents) }
	else
		local branches = {}
		for index = 1, self.params.shots do
			branches[`shot {string.format("%02d", index)}`] = function()
				return attempt.implement(self, target, model, parents)
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
