--!strict
--- Validation: the commands of a goal, in order, on a clean checkout with the protected files from the start; and the end
--- of the worktree that it was in.

local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local programs = require("../common/programs")
local record = require("./record")
local state = require("./state")
local ui = require("@nietz/ui")

local validate = {}

export type Run = { step: number, command: string, exit: number, output: string }
export type Checked = {
	runs: { Run },
	--- Whether all commands were run and exited with 0.
	passed: boolean,
	--- Protected files that the work has changed.
	touched: { string },
	fingerprint: string,
	--- The commit that was validated, where it is not the worktree's own: with protected files put back.
	commit: string?,
	--- Why nothing could be run.
	hindered: string?,
}

--- The exit code of a command that could not be run at all, as shells have it.
local NOT_RUN = 126

--- Makes the worktree as it was committed, with the protected files as they were: returns these, and the commit that
--- has them, if there are any.
local function prepare(self: state.Session, tree: git.Handle): ({ string }, string?)
	local touched = tree:restore(if #self.protected > 0 then { from = self.start, globs = self.protected } else nil)
	-- On its branch the attempt's own version stays in the history; what can be merged has the original files.
	return touched, if #touched > 0 then tree:commit("Protected files as they were").commit else nil
end

--- Runs a goal's commands in a worktree whose work is committed; the first that fails is the last. `doing` is told
--- which command is run.
function validate.check(self: state.Session, goal: state.Goal, tree: git.Handle, doing: (what: string) -> ()): Checked
	local checked: Checked = { runs = {}, passed = true, touched = {}, fingerprint = "", commit = nil, hindered = nil }
	local ready, why = leftovers.try(function()
		checked.touched, checked.commit = prepare(self, tree)
	end)
	if not ready then
		checked.passed, checked.hindered = false, `there is no clean checkout to validate: {why}`
		return checked
	end
	for index, step in goal.steps do
		doing(`validating with {step.command} ({index} of {#goal.steps})`)
		local command = programs.resolve(self.params, step.command) :: git.Command
		command.seconds = self.params.validation_seconds
		command.repeatable = true
		local began, ran = leftovers.try(function()
			return tree:exec(command)
		end)
		if not began then
			ran = { over = "exit", exit = NOT_RUN, output = ran }
		end
		local output = ran.output
		if ran.over ~= "exit" then
			output ..= `\n[ended by its limit: {ran.over}]`
		end
		if ran.file ~= nil then
			output ..= `\n[all of it: {ran.file}]`
		end
		local exit = if ran.over == "exit" then ran.exit else 124
		table.insert(checked.runs, { step = step.id, command = step.command, exit = exit, output = output })
		checked.fingerprint ..= `{exit} `
		if exit ~= 0 then
			checked.passed = false
			break
		end
	end
	return checked
end

--- Returns the status and detail of an attempt that came to its end, from what validation says.
function validate.judge(self: state.Session, goal: state.Goal, changed: boolean, checked: Checked, said: string): (string, string)
	local first = if #checked.touched > 0 then `tampered: {table.concat(checked.touched, ", ")}; ` else ""
	if checked.hindered ~= nil then
		return "error", `{first}{checked.hindered}. {said}`
	elseif not changed then
		return "completed", `{first}unchanged: no file was changed. {said}`
	elseif #goal.steps == 0 then
		return if self.params.accept_unvalidated then "success" else "completed", `{first}unvalidated: {said}`
	elseif checked.passed then
		return "success", first .. said
	end
	local last = checked.runs[#checked.runs]
	return "completed", `{first}\`{last.command}\` exited with {last.exit}. {said}`
end

--- Removes a worktree, and records that. One that cannot be removed stays, and is told.
function validate.remove(self: state.Session, tree: git.Handle, worktree_id: number)
	local removed, why = leftovers.try(function()
		return tree:remove({ discard = true })
	end)
	if removed then
		record.add(self.record, "worktree_end", { worktree_id = worktree_id })
	else
		ui.say(`The worktree {tree.path} stays: {why}`)
	end
end

--- Records what was run, for the attempt that it was run for.
function validate.record(self: state.Session, checked: Checked, result_id: number)
	for _, run in checked.runs do
		record.add(self.record, "validation_run", {
			validation_step_id = run.step,
			attempt_result_id = result_id,
			exit_code = run.exit,
			output = run.output,
		})
	end
end

return validate
