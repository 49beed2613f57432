--!strict
--- The shots at a goal: one attempt, or several side by side, best first; what came of them for the next ones, and which of
--- those that failed came nearest.

local attempt = require("./attempt")
local comparison = require("./comparison")
local git = require("@nietz/git")
local list = require("../common/list")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local open_attempt = require("./open_attempt")
local show = require("./show")
local state = require("./state")
local task = require("@nietz/task")
local ui = require("@nietz/ui")
local validate = require("./validate")

local shots = {}

--- How much of an attempt's own words later prompts are told, in bytes.
local MOST_DETAIL = 1500

--- Whether one outcome is better than another: the first that validated comes first, then others that validate, then one that
--- came to its end, then the earlier.
local function is_better(a: open_attempt.Outcome, b: open_attempt.Outcome, first: number?): boolean
	local function rank(outcome: open_attempt.Outcome): number
		if outcome.status == "success" then
			return if outcome.id == first then 4 else 3
		end
		return if outcome.status == "completed" then 2 else 1
	end
	local of_a, of_b = rank(a), rank(b)
	return if of_a == of_b then a.id < b.id else of_a > of_b
end

--- Groups outcomes that left the same files with the same result, in the order of the first of each.
local function group_equal(outcomes: { open_attempt.Outcome }): { { open_attempt.Outcome } }
	local groups: { { open_attempt.Outcome } } = {}
	local by_print: { [string]: { open_attempt.Outcome } } = {}
	for _, outcome in outcomes do
		local group = by_print[outcome.fingerprint]
		if group == nil then
			group = {}
			by_print[outcome.fingerprint] = group
			table.insert(groups, group)
		end
		table.insert(group, outcome)
	end
	return groups
end

--- Keeps a failed outcome as the best one of its goal, where it came nearer than those before.
local function keep_best(target: state.Goal, outcome: open_attempt.Outcome, base: string)
	local validation = outcome.validation
	if outcome.status == "success" or not outcome.changed or validation == nil or #validation.tampered > 0 then
		return
	end
	local runs = validate.by_command(validation)
	local better = validation.not_run == nil and comparison.of(target.baseline or {}, runs) == "better"
	local known = target.best
	if known ~= nil and known.base == base then
		local nearer = if better == known.better then comparison.of(known.runs, runs) == "better" else better
		if not nearer then
			return
		end
	end
	target.best = {
		attempt = outcome.id,
		branch = outcome.branch,
		branch_id = outcome.branch_id,
		commit = outcome.commit,
		base = base,
		runs = runs,
		better = better,
	}
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
	local round: state.Round = { validated = nil, name = nil }
	local base = git.commit_of(target.branch) :: string
	local count = shots.count(self.params)
	if count == 1 then
		outcomes = { attempt.implement(self, target, model, parents, round, self.params.shot_temperature[1]) }
	else
		local branches = {}
		round.name = `shots at goal {target.id}`
		for index = 1, count do
			local by, temperature = shots.variant(self.params, index, model)
			branches[`shot {string.format("%02d", index)}`] = function()
				return attempt.implement(self, target, by, parents, round, temperature)
			end
		end
		for _, outcome in task.all(branches) do
			table.insert(outcomes, outcome)
		end
	end
	table.sort(outcomes, function(a, b)
		return is_better(a, b, round.validated)
	end)
	for _, group in group_equal(outcomes) do
		local outcome = group[1]
		local ids = table.concat(
			list.map(group, function(each): string
				return tostring(each.id)
			end),
			", "
		)
		local who = if #group == 1 then `Attempt {ids} by` else `Attempts {ids}, which left the same files with the same result, by`
		table.insert(
			target.history,
			`{who} {outcome.model}: {outcome.status}. {string.sub(outcome.detail, 1, MOST_DETAIL)} {outcome.evidence}`
		)
		target.last_diff = outcome.last_diff or target.last_diff
		keep_best(target, outcome, base)
	end
	for _, outcome in outcomes do
		ui.say(show.attempt_line(target, outcome))
	end
	return outcomes
end

--- Returns the first of a round's outcomes that left the same files with the same result as an attempt of an earlier round, or
--- nil; and keeps them for later rounds. Equal ones of one round count once: they say nothing about the next one.
function shots.find_stalled(target: state.Goal, outcomes: { open_attempt.Outcome }): open_attempt.Outcome?
	local stalled: open_attempt.Outcome? = nil
	for _, outcome in outcomes do
		if target.fingerprints[outcome.fingerprint] then
			stalled = stalled or outcome
		end
	end
	for _, outcome in outcomes do
		target.fingerprints[outcome.fingerprint] = true
	end
	return stalled
end

--- Tells of each goal below one, and of itself, that was not reached: which failed attempt came nearest, and where that is.
function shots.tell_best(target: state.Goal)
	local best = target.best
	if target.status ~= "success" and best ~= nil then
		local how = if next(best.runs) ~= nil then `: {comparison.describe(best.runs)}` else ""
		ui.say(
			`Goal {target.id} was not reached. Nearest came attempt {best.attempt}, on \`{best.branch}\`{how}. Look at it: \`git diff {string.sub(
				best.base,
				1,
				12
			)} {best.branch}\``
		)
	end
	for _, child in target.children do
		shots.tell_best(child)
	end
end

return shots
