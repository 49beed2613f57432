--!strict
--- Working on a goal: shots, merges, breakdowns by the other model, and sub-goals, until it is reached or nothing is
--- left to try.

local breakdown = require("./breakdown")
local checkout = require("./checkout")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local messages = require("./messages")
local open_attempt = require("./open_attempt")
local progress = require("./progress")
local record = require("./record")
local shots = require("./shots")
local show = require("./show")
local state = require("./state")
local ui = require("@nietz/ui")
local validate = require("./validate")

local goal = {}

--- Records a goal with its branch and its validation.
function goal.new(self: state.Session, text: string, commands: { string }, parent: state.Goal?, order: number, by: number?): state.Goal
	local id = record.add(self.record, "goal", {
		session_id = self.id,
		goal_text = text,
		parent_goal_id = if parent then parent.id else nil,
		order = order,
		source = if parent then "breakdown" else "cli",
		created_by_attempt_id = by,
	})
	local steps = {}
	for index, command in commands do
		local step = record.add(self.record, "validation_step", {
			goal_id = id,
			order = index,
			command = command,
			source = if parent then "breakdown" else "cli",
		})
		table.insert(steps, { id = step, command = command })
	end
	self.goals += 1
	return {
		id = id,
		text = text,
		depth = if parent then parent.depth + 1 else 1,
		breakdowns_above = if parent then parent.breakdowns_above + 1 else 0,
		branch = "",
		branch_id = 0,
		base_commit = "",
		steps = steps,
		history = {},
		fingerprints = {},
		children = {},
		status = "open",
		shots = {},
	}
end

--- Records what became of a goal: `success`, `failed` or `not_started`, and why.
function goal.close(self: state.Session, target: state.Goal, status: string, detail: string)
	target.status = status
	record.add(self.record, "goal_end", { goal_id = target.id, status = status, status_detail = detail })
end

--- Closes the sub-goals that were not begun.
local function skip_open_children(self: state.Session, target: state.Goal, why: string)
	for _, sub in target.children do
		if sub.status == "open" then
			goal.close(self, sub, "not_started", why)
		end
	end
end

--- Creates the branch of a goal, from its parent's or from the start commit.
function goal.open(self: state.Session, target: state.Goal, name: string, from: string, parent: state.Goal?)
	git.branch(name, from)
	target.branch = name
	target.base_commit = from
	target.branch_id = record.add(self.record, "branch", {
		session_id = self.id,
		name = name,
		parent_branch_id = if parent then parent.branch_id else nil,
		parent_commit_sha = from,
		reason = "goal",
		created_by_goal_id = target.id,
	})
end

--- Merges a branch into a goal's. Returns why it cannot be merged, or nil; and whether the reason is not in the two branches,
--- so that no further attempt can help.
local function merge(self: state.Session, from: string, from_id: number, into: state.Goal, what: string): (string?, boolean)
	local began, merged = leftovers.try(function()
		local message = messages.merge(self, into, what)
		return git.merge({ from = from, into = into.branch, message = message, author = self.params.author })
	end)
	if not began then
		return merged, true
	end
	local row = {
		from_branch_id = from_id,
		from_commit_sha = merged.from,
		to_branch_id = into.branch_id,
		to_commit_sha = merged.into,
	} :: record.Row
	if merged.commit == nil then
		row.paths, row.messages = merged.conflicts, merged.messages
		record.add(self.record, "merge_conflict", row)
		return "conflicts in " .. table.concat(merged.conflicts :: { string }, ", "), false
	end
	row.result_commit_sha = merged.commit
	record.add(self.record, "merge", row)
	return nil, false
end

--- Validates all merged sub-goals together. Recorded for the attempt that reached the last of them.
local function validate_merged(self: state.Session, target: state.Goal, result_id: number): boolean
	if #target.steps == 0 then
		return self.params.accept_unvalidated
	end
	local place = checkout.create(self, target, "v", "", "validation")
	local shot = progress.begin(self, target, "all sub-goals together")
	local validation = validate.run(self, target, place.tree, function(what: string)
		progress.update(self, shot, what)
	end)
	validate.record_runs(self, validation, result_id)
	validate.remove_worktree(self, place.tree, place.worktree_id)
	progress.finish(self, shot, if validation.passed then "success" else "completed")
	if not validation.passed then
		local last = validation.runs[#validation.runs]
		table.insert(
			target.history,
			if last == nil
				then `All sub-goals together: {validation.not_run}`
				else `All sub-goals together: \`{last.command}\` exited with {last.exit}:\n{string.sub(last.output, -1500)}`
		)
	end
	return validation.passed
end

--- Works on the sub-goals in order, up to the first that fails. Returns the result id of the last attempt that reached one of
--- them, and whether all were merged.
local function work_on_children(self: state.Session, target: state.Goal, model: number, parents: { state.Goal }): (number?, boolean)
	local last: number? = nil
	local above = table.clone(parents)
	table.insert(above, target)
	for _, sub in target.children do
		if sub.status ~= "open" then
			continue
		end
		local from = git.commit_of(target.branch) :: string
		goal.open(self, sub, `{(self.root :: state.Goal).branch}-g{sub.id}`, from, target)
		local reached = goal.reach(self, sub, model, above)
		if reached == nil then
			local why = sub.history[#sub.history] or "nothing was tried"
			goal.close(self, sub, "failed", why)
			table.insert(target.history, `Sub-goal "{sub.text}" failed: {why}`)
			skip_open_children(self, target, `sub-goal {sub.id} before it failed`)
			return last, false
		end
		last = reached
		local conflict = merge(self, sub.branch, sub.branch_id, target, `Merge sub-goal {sub.id}: {sub.text}`)
		if conflict ~= nil then
			goal.close(self, sub, "failed", `reached on {sub.branch}, and cannot be merged: {conflict}`)
			skip_open_children(self, target, `sub-goal {sub.id} before it cannot be merged`)
			table.insert(target.history, `Sub-goal "{sub.text}" was reached on {sub.branch}, and cannot be merged: {conflict}`)
			return last, false
		end
		goal.close(self, sub, "success", `merged onto {target.branch}`)
	end
	return last, true
end

--- Has a model break the goal down; returns whether that gave sub-goals.
local function break_down(self: state.Session, target: state.Goal, model: string): boolean
	self.breakdowns += 1
	local outcome = breakdown.run(self, target, model)
	ui.say(show.attempt_line(target, outcome))
	target.breakdowns_above += 1
	if outcome.value == nil then
		table.insert(target.history, `The breakdown by {model} failed: {outcome.detail}`)
		return false
	end
	for index, sub in outcome.value do
		local child = goal.new(self, sub.goal, sub.validation, target, index, outcome.id)
		child.breakdowns_above = target.breakdowns_above
		table.insert(target.children, child)
	end
	return true
end

--- Returns why a goal may not be broken down any more, or nil.
local function breakdown_limit(self: state.Session, target: state.Goal): string?
	local most = self.params.max_breakdowns
	if self.breakdowns >= most then
		return `all {most} breakdowns are used`
	elseif target.breakdowns_above >= most then
		return `{most} breakdowns led to this goal`
	elseif target.depth >= self.params.max_depth then
		return `sub-goals would be deeper than {self.params.max_depth}`
	end
	return open_attempt.limit_reached(self)
end

local function stop(self: state.Session, target: state.Goal, why: string): nil
	table.insert(target.history, why)
	self.stop_reason = why
	ui.say(`✗ goal {target.id}: {why}`)
	return nil
end

--- Works on a goal until it is reached, and returns the result id of the attempt that reached it, or nil; the caller closes
--- the goal. `first` is the number of the model that attempts it first; the other breaks it down, and then they change roles.
function goal.reach(self: state.Session, target: state.Goal, first: number, parents: { state.Goal }): number?
	local shooter = first
	ui.say(`• goal {target.id}: {target.text}`)
	while true do
		local full = open_attempt.limit_reached(self)
		if full ~= nil then
			return stop(self, target, full)
		end
		local outcomes = shots.take(self, target, self.models[shooter], parents)
		local best = outcomes[1]
		if best.status == "success" then
			local conflict, for_good =
				merge(self, best.branch, best.branch_id, target, `Merge attempt {best.id} at goal {target.id}: {target.text}`)
			if conflict == nil then
				ui.say(`✓ goal {target.id}: {target.text}`)
				return best.result_id
			end
			local why = `attempt {best.id} validates on {best.branch}, and cannot be merged: {conflict}`
			if for_good then
				return stop(self, target, why)
			end
			table.insert(target.history, why)
		end
		for _, outcome in outcomes do
			if target.fingerprints[outcome.fingerprint] then
				return stop(self, target, `stalled: attempt {outcome.id} left the same files with the same result as one before`)
			end
			target.fingerprints[outcome.fingerprint] = true
		end
		local why = breakdown_limit(self, target)
		if why ~= nil then
			return stop(self, target, why)
		end
		local other = 3 - shooter
		if break_down(self, target, self.models[other]) then
			local last, all = work_on_children(self, target, other, parents)
			if all and last ~= nil and validate_merged(self, target, last) then
				ui.say(`✓ goal {target.id}: {target.text}`)
				return last
			end
		end
		shooter = other
	end
end

return goal
