--!strict
--- Validation: runs the commands of a goal in order, on a clean checkout with the protected files from the start commit; and
--- removes the worktree that it ran in.

local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local programs = require("../common/programs")
local record = require("./record")
local state = require("./state")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local validate = {}

--- `ended_at` is the time of the row.
export type Run = { step: number, command: string, exit: number, output: string, ended_at: string }
export type Validation = {
	runs: { Run },
	--- Whether all commands were run and exited with 0.
	passed: boolean,
	--- Protected files that the work has changed.
	tampered: { string },
	fingerprint: string,
	--- The commit that was validated, where it is not the worktree's own: with protected files put back.
	commit: string?,
	--- Why nothing could be run.
	not_run: string?,
}

--- The exit code of a command that could not be run at all, as shells have it.
local NOT_RUN = 126

--- Restores the worktree to what was committed, with the protected files from the start commit. Returns the protected files
--- that the work had changed, and the commit that undoes that, if there are any.
local function prepare(self: state.Session, tree: git.Handle): ({ string }, string?)
	local tampered = tree:restore(if #self.protected_globs > 0 then { from = self.start_commit, globs = self.protected_globs } else nil)
	-- The attempt's version stays in the branch's history; what can be merged has the original files.
	return tampered, if #tampered > 0 then tree:commit("Protected files as they were").commit else nil
end

--- Runs a goal's commands in a worktree, up to the first that fails.
local function run_steps(
	self: state.Session,
	goal: state.Goal,
	validation: Validation,
	tree: git.Handle,
	builds: git.Builds?,
	on_progress: (what: string) -> ()
)
	for index, step in goal.steps do
		on_progress(`validating with {step.command} ({index} of {#goal.steps})`)
		local command = programs.resolve(self.params, step.command) :: git.Command
		command.seconds = self.params.validation_seconds
		command.repeatable = true
		local began, ran = leftovers.try(function()
			return workplace.exec(self.workplace, tree, command, builds)
		end)
		if not began then
			ran = { over = "exit", exit = NOT_RUN, output = ran }
		end
		local output = workplace.localize(self.workplace, tree, ran.output)
		if ran.over ~= "exit" then
			output ..= `\n[ended by its limit: {ran.over}]`
		end
		if ran.file ~= nil then
			output ..= `\n[all of it: {ran.file}]`
		end
		local exit = if ran.over == "exit" then ran.exit else 124
		table.insert(validation.runs, { step = step.id, command = step.command, exit = exit, output = output, ended_at = record.now() })
		validation.fingerprint ..= `{exit} `
		if exit ~= 0 then
			validation.passed = false
			break
		end
	end
end

--- Runs a goal's commands in a worktree whose work is committed, up to the first that fails. `on_progress` is told which command
--- runs.
function validate.run(self: state.Session, goal: state.Goal, tree: git.Handle, on_progress: (what: string) -> ()): Validation
	local validation: Validation = { runs = {}, passed = true, tampered = {}, fingerprint = "", commit = nil, not_run = nil }
	local ready, why = leftovers.try(function()
		validation.tampered, validation.commit = prepare(self, tree)
	end)
	if not ready then
		validation.passed, validation.not_run = false, `there is no clean checkout to validate: {why}`
		return validation
	end
	local judged, failed = leftovers.try(function()
		local commit = validation.commit or git.commit_of(tree.branch) :: string
		workplace.validate(self.workplace, tree, commit, function(place, builds)
			run_steps(self, goal, validation, place, builds, on_progress)
			return nil
		end)
	end)
	if not judged then
		validation.passed, validation.not_run = false, `there is no clean checkout to validate: {failed}`
	end
	return validation
end

--- Returns the status and detail of an attempt that came to its end, from what validation says.
function validate.judge(self: state.Session, goal: state.Goal, changed: boolean, validation: Validation, said: string): (string, string)
	local first = if #validation.tampered > 0 then `tampered: {table.concat(validation.tampered, ", ")}; ` else ""
	if validation.not_run ~= nil then
		return "error", `{first}{validation.not_run}. {said}`
	elseif not changed then
		return "completed", `{first}unchanged: no file was changed. {said}`
	elseif #goal.steps == 0 then
		return if self.params.accept_unvalidated then "success" else "completed", `{first}unvalidated: {said}`
	elseif validation.passed then
		return "success", first .. said
	end
	local last = validation.runs[#validation.runs]
	return "completed", `{first}\`{last.command}\` exited with {last.exit}. {said}`
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
