--!strict
--- One attempt of one model, in a branch and a worktree of its own: its tools, its limits and its outcome. Whatever the model
--- leaves in the worktree, what can be committed is committed on the branch, and the end is recorded.

local checkout = require("./checkout")
local clock = require("@nietz/clock")
local entries = require("../common/memory/entries")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local llm = require("@nietz/llm")
local programs = require("../common/programs")
local progress = require("./progress")
local recall = require("../common/memory/recall")
local record = require("./record")
local recorded_tools = require("./recorded_tools")
local state = require("./state")
local template = require("@nietz/template")
local tool_loop = require("../common/tool_loop")
local tools = require("../common/tools")
local ui = require("@nietz/ui")
local validate = require("./validate")

local attempt = {}

export type SubGoal = { goal: string, validation: { string } }

export type Outcome = {
	id: number,
	result_id: number,
	model: string,
	status: string,
	detail: string,
	branch: string,
	branch_id: number,
	commit: string,
	--- The same for two attempts with the same files and the same results of validation: so a stall is noticed.
	fingerprint: string,
	used: tools.Usage,
	--- What it changed and what validation wrote, for the prompts of later attempts.
	evidence: string,
	--- The value of a breakdown.
	value: { SubGoal }?,
}

--- An attempt that has begun, and what belongs to it.
type OpenAttempt = {
	id: number,
	model: string,
	place: checkout.Checkout,
	label: string,
	prompt: string,
	offered: { [string]: llm.Tool },
	rejected: (call: llm.Call, why: string, so_far: llm.SoFar) -> (),
	--- Its line in the goal tree that is shown.
	shot: state.Shot,
	on_progress: (what: string) -> (),
	used: tools.Usage,
}

local function goal_texts(parents: { state.Goal }): { string }
	return list.map(parents, function(goal)
		return goal.text
	end)
end

local function commands_of(goal: state.Goal): { string }
	return list.map(goal.steps, function(step)
		return step.command
	end)
end

local function begin(self: state.Session, goal: state.Goal, model: string, kind: string, prompt: string): OpenAttempt
	local breaks_down = kind == "breakdown"
	local suffix, reason = if breaks_down then "-breakdown" else "", if breaks_down then "breakdown" else "attempt"
	local place = checkout.create(self, goal, "a", suffix, reason)
	local id = record.add(self.record, "attempt", {
		goal_id = goal.id,
		worktree_id = place.worktree_id,
		start_commit_sha = place.start,
		prompt = prompt,
		model = model,
		attempt_type = kind,
	})
	local used: tools.Usage = { calls = 0, written = 0, input = 0, output = 0, cached = 0, cost = 0 }
	local shot = progress.begin(self, goal, `{kind} {id} ({model})`)
	local function on_progress(what: string)
		progress.update(self, shot, what)
	end
	local offered, rejected = recorded_tools.offer(self, id, place.tree, kind == "implementation", commands_of(goal), on_progress, used)
	ui.say(`• goal {goal.id}, {kind} {id} ({model}) begins`)
	return {
		id = id,
		model = model,
		place = place,
		label = `goal {goal.id}, attempt {id}`,
		prompt = prompt,
		offered = offered,
		rejected = rejected,
		shot = shot,
		on_progress = on_progress,
		used = used,
	}
end

--- Lets the model work within its limits; returns how it ended (validation may change that status), a detail, and the reply.
local function run_model(self: state.Session, open_attempt: OpenAttempt, more: llm.Chat): (string, string, llm.Reply?)
	local request = table.clone(more)
	request.model = open_attempt.model
	request.prompt = open_attempt.prompt
	request.tools = open_attempt.offered
	request.rejected = open_attempt.rejected
	request.label = open_attempt.label
	return tool_loop.run(self.params, request, open_attempt.used)
end

--- Records the end of an attempt; returns the row's id.
local function record_result(self: state.Session, open_attempt: OpenAttempt, commit: string, status: string, detail: string): number
	local patch = ""
	if commit ~= open_attempt.place.start then
		local ok, diff = leftovers.try(function()
			return git.diff(open_attempt.place.start, commit)
		end)
		if ok then
			patch = diff.patch .. (if diff.cut then `\n[cut here; all of it: git diff {open_attempt.place.start} {commit}]\n` else "")
		else
			patch = `[git cannot show it: {diff}]\n`
		end
	end
	local id = record.add(self.record, "attempt_result", {
		attempt_id = open_attempt.id,
		end_commit_sha = commit,
		diff = patch,
		status = status,
		status_detail = detail,
	})
	record.add(self.record, "attempt_usage", {
		attempt_id = open_attempt.id,
		input_tokens = open_attempt.used.input,
		output_tokens = open_attempt.used.output,
		cached_tokens = open_attempt.used.cached,
		cost = open_attempt.used.cost,
		tool_calls = open_attempt.used.calls,
	})
	self.tokens += open_attempt.used.input + open_attempt.used.output
	self.cost = if self.cost and open_attempt.used.cost then self.cost + open_attempt.used.cost else nil
	return id
end

--- Removes the worktree, and returns the outcome without the members that only some attempts have.
local function close_attempt(
	self: state.Session,
	open_attempt: OpenAttempt,
	result_id: number,
	status: string,
	detail: string,
	commit: string
): Outcome
	validate.remove_worktree(self, open_attempt.place.tree, open_attempt.place.worktree_id)
	progress.finish(self, open_attempt.shot, status)
	return {
		id = open_attempt.id,
		result_id = result_id,
		model = open_attempt.model,
		status = status,
		detail = detail,
		branch = open_attempt.place.branch,
		branch_id = open_attempt.place.branch_id,
		commit = commit,
		fingerprint = "",
		used = open_attempt.used,
		evidence = "",
		value = nil,
	}
end

--- Returns which files an attempt has changed, the end of what the command that failed wrote, and what the debug
--- memory knows of failures like that.
local function collect_evidence(self: state.Session, open_attempt: OpenAttempt, commit: string, validation: validate.Validation?): string
	local start = open_attempt.place.start
	local ok, paths = leftovers.try(function()
		return git.changed(start, commit)
	end)
	local parts = {}
	if ok then
		local shown = table.concat(paths, ", ", 1, math.min(#paths, 20)) .. (if #paths > 20 then " and more" else "")
		table.insert(parts, if #paths > 0 then `It changed {shown}.` else "It changed nothing.")
	end
	local last = if validation then validation.runs[#validation.runs] else nil
	if last ~= nil and last.exit ~= 0 then
		table.insert(parts, `\`{last.command}\` wrote at last:\n{string.sub(last.output, -2000)}`)
		if self.params.memory then
			local ran: git.Ran = { over = "exit", exit = last.exit, output = last.output }
			local known = recall.for_model(recall.find_in_run(ran, open_attempt.place.tree.path), {})
			if known ~= "" then
				table.insert(parts, "\n" .. known)
			end
		end
	end
	return table.concat(parts, " ")
end

--- Puts a failed shot into the debug memory, with what the last command of its validation showed.
local function remember(
	self: state.Session,
	open_attempt: OpenAttempt,
	shot: { goal: string, detail: string, commit: string, tree: string, runs: { validate.Run } }
)
	local last = shot.runs[#shot.runs]
	if not self.params.memory or last == nil or last.exit == 0 then
		return
	end
	entries.remember_shot({
		run = self.name,
		model = open_attempt.model,
		goal = shot.goal,
		tried = shot.detail,
		start = open_attempt.place.start,
		commit = shot.commit,
		tree = shot.tree,
		top = open_attempt.place.tree.path,
		ran = { over = "exit", exit = last.exit, output = last.output },
	})
end

--- Tries to reach a goal by changing files.
function attempt.implement(self: state.Session, goal: state.Goal, model: string, parents: { state.Goal }): Outcome
	local commands = commands_of(goal)
	local prompt = template.render("./prompts/implement.md", {
		goal = goal.text,
		layout = self.repo_listing,
		parents = goal_texts(parents),
		steps = commands,
		protected = self.protected_globs,
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local open_attempt = begin(self, goal, model, "implementation", prompt)
	local status, detail = run_model(self, open_attempt, {})
	local kept, committed = leftovers.try(function()
		return open_attempt.place.tree:commit(`{goal.text}\n\nAttempt {open_attempt.id} at goal {goal.id}, by {model}: {status}`)
	end)
	local validation: validate.Validation? = nil
	local commit = if kept then committed.commit else open_attempt.place.start
	if not kept then
		status, detail = "error", `the work cannot be committed: {committed}; {status}: {detail}`
	elseif status == "completed" then
		local done = validate.run(self, goal, open_attempt.place.tree, open_attempt.on_progress)
		validation, commit = done, done.commit or commit
		local ok, paths = leftovers.try(function()
			return git.changed(goal.base_commit, commit)
		end)
		local changed = if ok then #paths > 0 else commit ~= goal.base_commit
		status, detail = validate.judge(self, goal, changed, done, detail)
	end
	local result_id = record_result(self, open_attempt, commit, status, detail)
	if validation ~= nil then
		validate.record_runs(self, validation, result_id)
	end
	local outcome = close_attempt(self, open_attempt, result_id, status, detail, commit)
	-- What could not be committed cannot be compared: its branch makes it differ from all others.
	outcome.fingerprint = `{if kept then committed.tree else open_attempt.place.branch} {status} `
		.. (if validation then validation.fingerprint else "")
	outcome.evidence = collect_evidence(self, open_attempt, commit, validation)
	if validation ~= nil and status ~= "success" then
		remember(self, open_attempt, { goal = goal.text, detail = detail, commit = commit, tree = committed.tree, runs = validation.runs })
	end
	return outcome
end

local SUB_GOALS = {
	type = "object",
	required = { "sub_goals" },
	properties = {
		sub_goals = {
			type = "array",
			minItems = 3,
			maxItems = 5,
			items = {
				type = "object",
				required = { "goal", "validation" },
				properties = {
					goal = { type = "string", minLength = 10 },
					validation = { type = "array", maxItems = 5, items = { type = "string", minLength = 1 } },
				},
			},
		},
	},
}

--- Has a model break a goal down, with tools that only read. The outcome's value is the list of sub-goals, or nil.
function attempt.breakdown(self: state.Session, goal: state.Goal, model: string): Outcome
	local prompt = template.render("./prompts/breakdown.md", {
		goal = goal.text,
		layout = self.repo_listing,
		steps = commands_of(goal),
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local open_attempt = begin(self, goal, model, "breakdown", prompt)
	local needs_validation = programs.describe_allowed(self.params) ~= nil
	local status, detail, reply = run_model(self, open_attempt, {
		schema = SUB_GOALS,
		check = function(value: { sub_goals: { SubGoal } }): string?
			for index, sub in value.sub_goals do
				if needs_validation and #sub.validation == 0 then
					return `sub-goal {index} has no validation`
				end
				for _, command in sub.validation do
					local _, why = programs.resolve(self.params, command)
					if why ~= nil then
						return `sub-goal {index}: {why}`
					end
				end
			end
			return nil
		end,
	})
	local value = if reply then reply.value else nil
	if value ~= nil then
		status, detail = "success", `{#value.sub_goals} sub-goals`
	end
	local result_id = record_result(self, open_attempt, open_attempt.place.start, status, detail)
	record.add(self.record, "breakdown_response", {
		attempt_result_id = result_id,
		response = if reply then reply.text else detail,
	})
	local outcome = close_attempt(self, open_attempt, result_id, status, detail, open_attempt.place.start)
	outcome.value = if value then value.sub_goals else nil
	return outcome
end

--- Returns the limit of the session that forbids one more attempt, or nil.
function attempt.limit_reached(self: state.Session): string?
	if self.tokens >= self.params.session_tokens then
		return `the session's limit of {self.params.session_tokens} tokens`
	elseif self.params.session_cost ~= nil and self.cost == nil then
		return "the session's cost is limited, and a price is not known"
	elseif self.params.session_cost ~= nil and self.cost >= self.params.session_cost then
		return `the session's limit of {self.params.session_cost} US dollars`
	elseif clock.unix() - self.started_at >= self.params.session_seconds then
		return `the session's limit of {self.params.session_seconds} seconds`
	end
	return nil
end

return attempt
