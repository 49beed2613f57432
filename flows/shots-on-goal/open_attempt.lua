--!strict
--- What every attempt begins and ends with, whatever it is for: a branch and a worktree, the tools, the model's work within its
--- limits, and the rows that record its end.

local checkout = require("./checkout")
local clock = require("@nietz/clock")
local failure = require("../common/failure")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local llm = require("@nietz/llm")
local progress = require("./progress")
local record = require("./record")
local recorded_tools = require("./recorded_tools")
local state = require("./state")
local task = require("@nietz/task")
local tool_loop = require("../common/tool_loop")
local tools = require("../common/tools")
local ui = require("@nietz/ui")
local validate = require("./validate")

local open_attempt = {}

--- A part as a model gives it. `after` are the numbers of those that it needs; without, it needs the one before it.
export type SubGoal = { goal: string, after: { number }?, validation: { string } }

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
	--- How what validates came out, and whether the files differ from the goal's first ones.
	validation: validate.Validation?,
	changed: boolean?,
	--- What it left, where it failed.
	last_diff: state.LastDiff?,
}

--- An attempt that has begun, and what belongs to it.
export type OpenAttempt = {
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
	--- When the model ended.
	ended_at: string,
}

--- Returns the commands that validate a goal.
function open_attempt.commands_of(goal: state.Goal): { string }
	return list.map(goal.steps, function(step)
		return step.command
	end)
end

--- Begins an attempt of a kind: `implementation` or `breakdown`.
function open_attempt.begin(self: state.Session, goal: state.Goal, model: string, kind: string, prompt: string): OpenAttempt
	local breaks_down = kind == "breakdown"
	local suffix, reason = if breaks_down then "-breakdown" else "", if breaks_down then "breakdown" else "attempt"
	-- Taken before the first wait: its branch and its worktree are called by it.
	local id = record.reserve(self.record, "attempt")
	local place = checkout.create(self, goal, "a", suffix, reason, id)
	record.add(self.record, "attempt", {
		id = id,
		goal_id = goal.id,
		worktree_id = place.worktree_id,
		start_commit_sha = place.start,
		prompt = prompt,
		model = model,
		attempt_type = kind,
	})
	local used = tools.usage()
	local shot = progress.begin(self, goal, `{kind} {id} ({model})`, used)
	local function on_progress(what: string)
		progress.update(self, shot, what)
	end
	local offered, rejected =
		recorded_tools.offer(self, id, place.tree, kind == "implementation", open_attempt.commands_of(goal), on_progress, used)
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
		ended_at = "",
	}
end

--- How an attempt is called that was ended because another shot of its round has validated.
local SUPERSEDED = "superseded"

--- Does something for one shot of a round of several. Once another of them has validated, this ends at once, whatever it waits
--- for: false, and why. A failure is raised again.
function open_attempt.unless_superseded(round: state.Round, run: () -> ()): (boolean, string?)
	local function why(): string
		return `{SUPERSEDED}: attempt {round.validated} validated before this one ended`
	end
	if round.name == nil then
		run()
		return true, nil
	elseif round.validated ~= nil then
		return false, why()
	end
	local ok, raised: any = pcall(task.stoppable, round.name, function()
		run()
		return nil
	end)
	if not ok and not failure.is(raised, "stopped") then
		error(raised, 0)
	end
	return ok, if ok then nil else why()
end

--- Lets the model work within its limits; returns how it ended (validation may change that status), a detail, and the reply.
--- Of shots side by side, those that are under way when one of the `round` has validated end at once: `superseded`.
function open_attempt.run_model(
	self: state.Session,
	attempt: OpenAttempt,
	more: llm.Chat,
	round: state.Round?
): (string, string, llm.Reply?)
	local request = table.clone(more)
	request.model = attempt.model
	request.prompt = attempt.prompt
	request.tools = attempt.offered
	request.rejected = attempt.rejected
	request.label = attempt.label
	local status, detail, reply = SUPERSEDED, "", nil :: llm.Reply?
	local ended, why = open_attempt.unless_superseded(round or { validated = nil }, function()
		status, detail, reply = tool_loop.run(self.params, request, attempt.used)
		if status == "stopped" then
			error({ code = status, message = detail }, 0)
		end
	end)
	attempt.ended_at = record.now()
	if not ended then
		return SUPERSEDED, why :: string, nil
	end
	return status, detail, reply
end

--- Records the end of an attempt; returns the row's id.
function open_attempt.record_result(self: state.Session, attempt: OpenAttempt, commit: string, status: string, detail: string): number
	local patch = ""
	if commit ~= attempt.place.start then
		local ok, diff = leftovers.try(function()
			return git.diff(attempt.place.start, commit)
		end)
		if ok then
			patch = diff.patch .. (if diff.cut then `\n[cut here; all of it: git diff {attempt.place.start} {commit}]\n` else "")
		else
			patch = `[git cannot show it: {diff}]\n`
		end
	end
	local id = record.add(self.record, "attempt_result", {
		timestamp = attempt.ended_at,
		attempt_id = attempt.id,
		end_commit_sha = commit,
		diff = patch,
		status = status,
		status_detail = detail,
	})
	record.add(self.record, "attempt_usage", {
		attempt_id = attempt.id,
		input_tokens = attempt.used.input,
		output_tokens = attempt.used.output,
		cached_tokens = attempt.used.cached,
		cost = attempt.used.cost,
		tool_calls = attempt.used.calls,
		turns = attempt.used.turns,
		left_out = attempt.used.left_out,
	})
	self.tokens += attempt.used.input + attempt.used.output
	self.counted_tokens += tools.counted_tokens(attempt.used)
	self.cost = if self.cost and attempt.used.cost then self.cost + attempt.used.cost else nil
	return id
end

--- Removes the worktree, and returns the outcome without the members that only some attempts have.
function open_attempt.close(
	self: state.Session,
	attempt: OpenAttempt,
	result_id: number,
	status: string,
	detail: string,
	commit: string
): Outcome
	validate.remove_worktree(self, attempt.place.tree, attempt.place.worktree_id)
	progress.finish(self, attempt.shot, status)
	return {
		id = attempt.id,
		result_id = result_id,
		model = attempt.model,
		status = status,
		detail = detail,
		branch = attempt.place.branch,
		branch_id = attempt.place.branch_id,
		commit = commit,
		fingerprint = "",
		used = attempt.used,
		evidence = "",
		value = nil,
	}
end

--- Returns the limit of the session that forbids one more attempt, or nil.
function open_attempt.limit_reached(self: state.Session): string?
	if self.counted_tokens >= self.params.session_tokens then
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

return open_attempt
