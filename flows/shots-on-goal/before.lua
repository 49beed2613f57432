--!strict
--- Looks whether a part of a goal is reached before anybody is paid for it: what other parts have brought may have reached it,
--- and a command of its validation may be one that cannot run here.

local checkout = require("./checkout")
local obstacles = require("../common/obstacles")
local progress = require("./progress")
local state = require("./state")
local ui = require("@nietz/ui")
local validate = require("./validate")

local before = {}

--- Runs what validates a goal on the commit at which its branch stands, and keeps that as what attempts are compared with.
--- Returns whether all of it passes. A command that cannot run here is told to the user and to the next attempt.
function before.is_reached(self: state.Session, goal: state.Goal): boolean
	if #goal.steps == 0 then
		return false
	end
	local place = checkout.create(self, goal, "v", "", "validation")
	local shot = progress.begin(self, goal, "before the first attempt")
	local validation = validate.run(self, goal, place.tree, function(what: string)
		progress.update(self, shot, what)
	end)
	goal.baseline = validate.by_command(validation)
	for _, run in validation.runs do
		local why = if self.workplace.validation ~= nil
			then obstacles.before(self.workplace, run.command, { over = "exit", exit = run.exit, output = run.output }, goal.text)
			else nil
		if why ~= nil then
			table.insert(goal.history, `\`{run.command}\` cannot run here: {why}`)
			ui.say(`Goal {goal.id}: \`{run.command}\` cannot run here: {why}`)
		end
	end
	validate.remove_worktree(self, place.tree, place.worktree_id)
	progress.finish(self, shot, if validation.passed then "success" else "completed")
	if validation.passed then
		ui.say(`✓ goal {goal.id}: reached already: {goal.text}`)
	end
	return validation.passed
end

return before
