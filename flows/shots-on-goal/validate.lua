--!strict
--- Validation: the commands of a goal, in order, on a clean checkout with the protected files from the start.

local programs = require("../common/programs")
local record = require("./record")
local state = require("./state")

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
}

--- Runs a goal's commands in a worktree whose work is committed; the first that fails is the last. `doing` is told
--- which command is run.
function validate.check(self: state.Session, goal: state.Goal, tree: any, doing: (what: string) -> ()): Checked
	local touched = tree:restore(if #self.protected > 0 then { from = self.start, globs = self.protected } else nil)
	-- On its branch the attempt's own version stays in the history; what can be merged has the original files.
	local commit = if #touched > 0 then tree:commit("Protected files as they were").commit else nil
	local checked: Checked = { runs = {}, passed = true, touched = touched, fingerprint = "", commit = commit }
	for index, step in goal.steps do
		doing(`validating with {step.command} ({index} of {#goal.steps})`)
		local command = programs.allowed(self.params, step.command)
		command.seconds = self.params.validation_seconds
		command.repeatable = true
		local ran = tree:exec(command)
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
	if not changed then
		return "completed", `{first}unchanged: no file was changed. {said}`
	elseif #goal.steps == 0 then
		return if self.params.accept_unvalidated then "success" else "completed", `{first}unvalidated: {said}`
	elseif checked.passed then
		return "success", first .. said
	end
	local last = checked.runs[#checked.runs]
	return "completed", `{first}\`{last.command}\` exited with {last.exit}. {said}`
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
