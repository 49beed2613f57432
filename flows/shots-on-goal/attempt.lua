--!strict
--- One attempt of one model: a branch and a worktree of its own, tools, limits, and what came of it. Whatever is left in
--- the worktree, what can be committed is committed on its branch, and the end is recorded.

local checkout = require("./checkout")
local clock = require("@nietz/clock")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local live = require("./live")
local llm = require("@nietz/llm")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local record = require("./record")
local recorded = require("./recorded")
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
	--- What stands for the tree and its validation results, for noticing a stall.
	fingerprint: string,
	used: tools.Usage,
	--- What it changed and what validation wrote, for the next one.
	evidence: string,
	--- The value of a breakdown.
	value: { SubGoal }?,
}

--- What an attempt is made of, from its beginning on.
type Begun = {
	id: number,
	model: string,
	place: checkout.Checkout,
	label: string,
	prompt: string,
	offered: { [string]: llm.Tool },
	rejected: (call: llm.Call, why: string, so_far: llm.SoFar) -> (),
	--- Its place in the tree that is shown.
	shot: state.Shot,
	doing: (what: string) -> (),
	used: tools.Usage,
}

local function lines_of(parents: { state.Goal }): { string }
	return list.map(parents, function(goal)
		return goal.text
	end)
end

local function commands_of(goal: state.Goal): { string }
	return list.map(goal.steps, function(step)
		return step.command
	end)
end

local function begin(self: state.Session, goal: state.Goal, model: string, kind: string, prompt: string): Begun
	local breaks_down = kind == "breakdown"
	local suffix, reason = if breaks_down then "-breakdown" else "", if breaks_down then "breakdown" else "attempt"
	local place = checkout.begin(self, goal, "a", suffix, reason)
	local id = record.add(self.record, "attempt", {
		goal_id = goal.id,
		worktree_id = place.worktree_id,
		start_commit_sha = place.start,
		prompt = prompt,
		model = model,
		attempt_type = kind,
	})
	local used: tools.Usage = { calls = 0, written = 0, input = 0, output = 0, cached = 0, cost = 0 }
	local shot = live.begin(self, goal, `{kind} {id} ({model})`)
	local function doing(what: string)
		live.doing(self, shot, what)
	end
	local offered, rejected = recorded.offer(self, id, place.tree, kind == "implementation", commands_of(goal), doing, used)
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
		doing = doing,
		used = used,
	}
end

--- Lets the model work, within the limits, and returns how it ended: a status that is not final yet, a detail, the reply.
local function work(self: state.Session, begun: Begun, more: llm.Chat): (string, string, llm.Reply?)
	local request = table.clone(more)
	request.model = begun.model
	request.prompt = begun.prompt
	request.tools = begun.offered
	request.rejected = begun.rejected
	request.label = begun.label
	return tool_loop.run(self.params, request, begun.used)
end

--- Records the end of an attempt; returns the row's id.
local function finish(self: state.Session, begun: Begun, commit: string, status: string, detail: string): number
	local patch = ""
	if commit ~= begun.place.start then
		local ok, diff = leftovers.try(function()
			return git.diff(begun.place.start, commit)
		end)
		if ok then
			patch = diff.patch .. (if diff.cut then `\n[cut here; all of it: git diff {begun.place.start} {commit}]\n` else "")
		else
			patch = `[git cannot show it: {diff}]\n`
		end
	end
	local id = record.add(self.record, "attempt_result", {
		attempt_id = begun.id,
		end_commit_sha = commit,
		diff = patch,
		status = status,
		status_detail = detail,
	})
	record.add(self.record, "attempt_usage", {
		attempt_id = begun.id,
		input_tokens = begun.used.input,
		output_tokens = begun.used.output,
		cached_tokens = begun.used.cached,
		cost = begun.used.cost,
		tool_calls = begun.used.calls,
	})
	self.tokens += begun.used.input + begun.used.output
	self.cost = if self.cost and begun.used.cost then self.cost + begun.used.cost else nil
	return id
end

--- Removes the worktree and returns what came of the attempt, without what only some have.
local function close(self: state.Session, begun: Begun, result_id: number, status: string, detail: string, commit: string): Outcome
	validate.remove(self, begun.place.tree, begun.place.worktree_id)
	live.over(self, begun.shot, status)
	return {
		id = begun.id,
		result_id = result_id,
		model = begun.model,
		status = status,
		detail = detail,
		branch = begun.place.branch,
		branch_id = begun.place.branch_id,
		commit = commit,
		fingerprint = "",
		used = begun.used,
		evidence = "",
		value = nil,
	}
end

--- Returns which files an attempt has changed, the end of what the command that failed wrote, and what the debug
--- memory knows of failures like that.
local function evidence(self: state.Session, begun: Begun, commit: string, checked: validate.Checked?): string
	local start = begun.place.start
	local ok, paths = leftovers.try(function()
		return git.changed(start, commit)
	end)
	local parts = {}
	if ok then
		local shown = table.concat(paths, ", ", 1, math.min(#paths, 20)) .. (if #paths > 20 then " and more" else "")
		table.insert(parts, if #paths > 0 then `It changed {shown}.` else "It changed nothing.")
	end
	local last = if checked then checked.runs[#checked.runs] else nil
	if last ~= nil and last.exit ~= 0 then
		table.insert(parts, `\`{last.command}\` wrote at last:\n{string.sub(last.output, -2000)}`)
		if self.params.memory then
			local ran: git.Ran = { over = "exit", exit = last.exit, output = last.output }
			local known = recall.for_model(recall.find_in_run(ran, begun.place.tree.path), {})
			if known ~= "" then
				table.insert(parts, "\n" .. known)
			end
		end
	end
	return table.concat(parts, " ")
end

--- Tries to reach a goal by changing files.
function attempt.implement(self: state.Session, goal: state.Goal, model: string, parents: { state.Goal }): Outcome
	local commands = commands_of(goal)
	local prompt = template.render("./prompts/implement.md", {
		goal = goal.text,
		layout = self.layout,
		parents = lines_of(parents),
		steps = commands,
		protected = self.protected,
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local begun = begin(self, goal, model, "implementation", prompt)
	local status, detail = work(self, begun, {})
	local kept, committed = leftovers.try(function()
		return begun.place.tree:commit(`{goal.text}\n\nAttempt {begun.id} at goal {goal.id}, by {model}: {status}`)
	end)
	local checked: validate.Checked? = nil
	local commit = if kept then committed.commit else begun.place.start
	if not kept then
		status, detail = "error", `the work cannot be committed: {committed}; {status}: {detail}`
	elseif status == "completed" then
		local done = validate.check(self, goal, begun.place.tree, begun.doing)
		checked, commit = done, done.commit or commit
		local ok, paths = leftovers.try(function()
			return git.changed(goal.base, commit)
		end)
		local changed = if ok then #paths > 0 else commit ~= goal.base
		status, detail = validate.judge(self, goal, changed, done, detail)
	end
	local result_id = finish(self, begun, commit, status, detail)
	if checked ~= nil then
		validate.record(self, checked, result_id)
	end
	local outcome = close(self, begun, result_id, status, detail, commit)
	-- Nothing is known to be the same as what could not be committed.
	outcome.fingerprint = `{if kept then committed.tree else begun.place.branch} {status} ` .. (if checked then checked.fingerprint else "")
	outcome.evidence = evidence(self, begun, commit, checked)
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
		layout = self.layout,
		steps = commands_of(goal),
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local begun = begin(self, goal, model, "breakdown", prompt)
	local needs_validation = programs.describe_allowed(self.params) ~= nil
	local status, detail, reply = work(self, begun, {
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
	local result_id = finish(self, begun, begun.place.start, status, detail)
	record.add(self.record, "breakdown_response", {
		attempt_result_id = result_id,
		response = if reply then reply.text else detail,
	})
	local outcome = close(self, begun, result_id, status, detail, begun.place.start)
	outcome.value = if value then value.sub_goals else nil
	return outcome
end

--- Tells whether the session's limits leave room for one more attempt, and why not.
function attempt.room(self: state.Session): string?
	if self.tokens >= self.params.session_tokens then
		return `the session's limit of {self.params.session_tokens} tokens`
	elseif self.params.session_cost ~= nil and self.cost == nil then
		return "the session's cost is limited, and a price is not known"
	elseif self.params.session_cost ~= nil and self.cost >= self.params.session_cost then
		return `the session's limit of {self.params.session_cost} US dollars`
	elseif clock.unix() - self.began >= self.params.session_seconds then
		return `the session's limit of {self.params.session_seconds} seconds`
	end
	return nil
end

return attempt
