--!strict
--- Validation: runs the commands of a goal in order, all of them, on a clean checkout with the protected files from the start
--- commit; and removes the worktree that it ran in.

local comparison = require("./comparison")
local counts = require("../common/guards/counts")
local git = require("@nietz/git")
local guards = require("../common/guards/guards")
local leftovers = require("../common/leftovers")
local programs = require("../common/programs")
local record = require("./record")
local results = require("../common/memory/results")
local state = require("./state")
local twins = require("../common/guards/twins")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local validate = {}

--- `report` is what the output says of tests, where a parser knows it.
export type Run = counts.Run
export type Validation = {
	runs: { Run },
	--- Whether all commands were run and exited with 0.
	passed: boolean,
	--- Protected files that the work has changed, and what of the tests that ran before does not hold any more.
	tampered: { string },
	--- Tests to which the work has only added: they were put back, too.
	put_back: { string },
	fingerprint: string,
	--- The commit that was validated, where it is not the worktree's own: with protected files put back.
	commit: string?,
	--- Why nothing could be run.
	not_run: string?,
}

--- The exit code of a command that could not be run at all, as shells have it.
local NOT_RUN = 126
--- The exit code of a command that was ended by a limit, as `timeout` has it.
local ENDED_BY_LIMIT = 124

--- Runs a command in a worktree; returns how it ended.
local function run_command(self: state.Session, text: string, tree: git.Handle, builds: git.Builds?): state.Known
	local command = programs.resolve(self.params, text) :: git.Command
	command.seconds = self.params.validation_seconds
	command.repeatable = true
	local began, ran = leftovers.try(function()
		return workplace.exec(self.workplace, tree, command, builds)
	end)
	if not began then
		return { exit = NOT_RUN, output = ran }
	end
	return validate.read(self.workplace, tree, ran)
end

--- Returns how a command ended, from what it wrote in a worktree.
function validate.read(place: workplace.Workplace, tree: git.Handle, ran: git.Ran): state.Known
	local output = workplace.localize(place, tree, ran.output)
	local report = results.read({ over = ran.over, exit = ran.exit, output = output, file = ran.file }, tree.path)
	if ran.over ~= "exit" then
		output ..= `\n[ended by its limit: {ran.over}]`
	end
	if ran.file ~= nil then
		output ..= `\n[all of it: {ran.file}]`
	end
	return {
		exit = if ran.over == "exit" then ran.exit else ENDED_BY_LIMIT,
		output = output,
		report = if report.framework ~= "unknown" then report else nil,
	}
end

--- Remembers how a command ended on a commit or a tree.
function validate.remember(self: state.Session, id: string, command: string, ran: state.Known)
	if ran.exit ~= NOT_RUN and ran.exit ~= ENDED_BY_LIMIT then
		self.known[`{id} {command}`] = ran
	end
end

--- Returns how a command has ended on one of these commits or trees, or nil.
local function recall_run(self: state.Session, ids: { string }, command: string): state.Known?
	for _, id in ids do
		local known = self.known[`{id} {command}`]
		if known ~= nil then
			return known
		end
	end
	return nil
end

--- Runs those commands of a goal in a worktree of which nobody knows how they end on its files, which are those of `ids`.
local function run_unknown(
	self: state.Session,
	goal: state.Goal,
	ids: { string },
	run: (command: string) -> state.Known,
	on_progress: (what: string) -> ()
): { [string]: state.Known }
	local ended: { [string]: state.Known } = {}
	for index, step in goal.steps do
		local ran = ended[step.command] or recall_run(self, ids, step.command)
		if ran == nil then
			on_progress(`validating with {step.command} ({index} of {#goal.steps})`)
			local fresh = run(step.command)
			for _, id in ids do
				validate.remember(self, id, step.command, fresh)
			end
			ended[step.command], ran = fresh, fresh
		end
		if ran ~= nil and ran.exit ~= 0 and self.params.fail_fast then
			break
		end
	end
	return ended
end

--- Adds how the commands of a goal ended, in their order; one that `--fail-fast` has left out is not there.
local function add_runs(self: state.Session, goal: state.Goal, validation: Validation, ids: { string }, fresh: { [string]: state.Known })
	for _, step in goal.steps do
		local ran = fresh[step.command] or recall_run(self, ids, step.command)
		if ran == nil then
			break
		end
		table.insert(validation.runs, {
			step = step.id,
			command = step.command,
			exit = ran.exit,
			output = ran.output,
			report = ran.report,
			ended_at = record.now(),
		})
		validation.fingerprint ..= `{ran.exit} `
		validation.passed = validation.passed and ran.exit == 0
		if ran.exit ~= 0 and self.params.fail_fast then
			break
		end
	end
end

--- Adds the guarded files that a goal's commands have changed while they ran in a worktree that stood at `ids[1]`. What was run
--- then is not remembered: the same again is to be found out again.
local function add_rewritten(self: state.Session, goal: state.Goal, ids: { string }, place: git.Handle, weakened: { string })
	local looked, said = leftovers.try(function()
		return guards.rewritten(self.guards, place, ids[1])
	end)
	local found: { string } = if looked then said else { `what the commands have changed cannot be told: {said}` }
	table.move(found, 1, #found, #weakened + 1, weakened)
	if #found > 0 then
		for _, step in goal.steps do
			for _, id in ids do
				self.known[`{id} {step.command}`] = nil
			end
		end
	end
end

--- Returns what a goal's commands said before any work.
local function before_work(self: state.Session, goal: state.Goal): guards.Before
	local before: guards.Before = {
		reports = self.baseline,
		outputs = {},
		failed = function(command: string): boolean
			local ran = if goal.baseline ~= nil then goal.baseline[command] else nil
			return ran ~= nil and ran.exit ~= 0
		end,
	}
	for _, step in goal.steps do
		local ran = recall_run(self, { self.start_commit }, step.command)
		if ran ~= nil then
			before.outputs[step.command] = ran.output
		end
	end
	return before
end

--- Adds what of the tests does not hold any more: with such a change nothing has passed.
local function add_weakened(self: state.Session, goal: state.Goal, validation: Validation, weakened: { string }, added: { twins.Twin })
	for _, said in { weakened, guards.compare(self.guards, before_work(self, goal), validation.runs, added) } do
		validation.passed = validation.passed and #said == 0
		table.move(said, 1, #said, #validation.tampered + 1, validation.tampered)
	end
	local uncounted = if validation.passed then counts.uncounted(validation.runs) else {}
	-- Once: with a part for each of fifty files it would be said of each, and the end names them all.
	if #uncounted > 0 and not self.uncounted_told then
		self.uncounted_told = true
		ui.say(`tests not counted: {table.concat(uncounted, ", ")} tells of none, and its exit code alone decides`)
	end
end

--- Runs a goal's commands on what a worktree has committed: all of them, or with `--fail-fast` up to the first that fails. What
--- was run on the same files before is not run again. `on_progress` is told which command runs.
function validate.run(self: state.Session, goal: state.Goal, tree: git.Handle, on_progress: (what: string) -> ()): Validation
	local validation: Validation = { runs = {}, passed = true, tampered = {}, put_back = {}, fingerprint = "", commit = nil, not_run = nil }
	local fresh: { [string]: state.Known } = {}
	local ids: { string } = {}
	local weakened: { string }, added: { twins.Twin } = {}, {}
	local judged, why = leftovers.try(function()
		local restored, commit = guards.restore(self.guards, tree)
		validation.tampered, validation.put_back, validation.commit = restored.tampered, restored.put_back, commit
		weakened, added = restored.weakened, restored.twins
		-- Nothing is left to commit: this tells which files stand there.
		local now = tree:commit("what is validated")
		ids = { now.commit, now.tree }
		local known = 0
		for _, step in goal.steps do
			known += if recall_run(self, ids, step.command) ~= nil then 1 else 0
		end
		if known < #goal.steps then
			workplace.validate(self.workplace, tree, now.commit, function(place, builds)
				fresh = run_unknown(self, goal, ids, function(command: string): state.Known
					return run_command(self, command, place, builds)
				end, on_progress)
				add_rewritten(self, goal, ids, place, weakened)
				return nil
			end)
		end
	end)
	if not judged then
		validation.passed, validation.not_run = false, `there is no clean checkout to validate: {why}`
	end
	add_runs(self, goal, validation, ids, fresh)
	add_weakened(self, goal, validation, weakened, added)
	return validation
end

--- Returns how the commands ended, by their text.
function validate.by_command(validation: Validation): comparison.Runs
	local runs: comparison.Runs = {}
	for _, run in validation.runs do
		runs[run.command] = { exit = run.exit, report = run.report }
	end
	return runs
end

--- Returns the commands that failed, as a sentence.
local function failed_commands(validation: Validation): string
	local parts = {}
	for _, run in validation.runs do
		if run.exit ~= 0 then
			table.insert(parts, `\`{run.command}\` exited with {run.exit}`)
		end
	end
	return if #parts > 0 then table.concat(parts, ", ") else "what validates passed all the same"
end

--- Returns what an attempt's detail begins with: what was done to the tests.
local function guarded_text(validation: Validation): string
	local first = if #validation.tampered > 0 then `tampered: {table.concat(validation.tampered, ", ")}; ` else ""
	if #validation.put_back > 0 then
		first ..= `put back: {table.concat(validation.put_back, ", ")} (--tests-may-change keeps what is added there); `
	end
	return first
end

--- Returns the status and detail of an attempt from what validation says. `ended` is how the model ended: `completed`, or what
--- ended it before it said that it was done, and `said` tells of that.
function validate.judge(
	self: state.Session,
	goal: state.Goal,
	changed: boolean,
	validation: Validation,
	ended: string,
	said: string
): (string, string)
	local first = guarded_text(validation)
	local limit = if ended ~= "completed" then `{ended}: ` else ""
	if validation.not_run ~= nil then
		return "error", `{first}{validation.not_run}. {said}`
	elseif not changed then
		return ended, if ended == "completed" then `{first}unchanged: no file was changed. {said}` else first .. said
	elseif #goal.steps == 0 then
		return if self.params.accept_unvalidated then "success" else ended, `{limit}{first}unvalidated: {said}`
	elseif validation.passed then
		local unproven = if self.unproven and goal == self.root then "unvalidated: what validates passed before, too. " else ""
		return "success", limit .. first .. unproven .. said
	elseif ended ~= "completed" then
		return ended, `{first}{said}; {failed_commands(validation)}`
	end
	return ended, `{first}{failed_commands(validation)}. {said}`
end

--- Removes a worktree, and records that. One that cannot be removed stays, which is said.
function validate.remove_worktree(self: state.Session, tree: git.Handle, worktree_id: number)
	local removed, why = leftovers.try(function()
		return tree:remove({ discard = true })
	end)
	if removed then
		record.add(self.record, "worktree_end", { worktree_id = worktree_id })
	else
		ui.say(`The worktree {tree.path} stays: {why}`)
	end
end

--- Records the runs of a validation, for the attempt that they were made for.
function validate.record_runs(self: state.Session, validation: Validation, result_id: number)
	for _, run in validation.runs do
		record.add(self.record, "validation_run", {
			validation_step_id = run.step,
			attempt_result_id = result_id,
			timestamp = run.ended_at,
			exit_code = run.exit,
			output = run.output,
		})
	end
end

return validate
