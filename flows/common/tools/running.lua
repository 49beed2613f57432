--!strict
--- The tool with which a model runs commands in a worktree.

local kit = require("./kit")
local programs = require("../programs")
local task = require("@nietz/task")
local workplace = require("../workplace")

local running = {}

running.TOOLS = {
	{
		name = "run",
		description = "Runs a command at the top of the repository and returns its exit code and output: a line of a shell, or where the task names commands, only those.",
		parameters = { type = "object", required = { "command" }, properties = { command = { type = "string" } } },
		writes = true,
		run = function(tree, arguments, _, offer)
			local command, why = programs.resolve(offer.params, arguments.command)
			if command == nil and offer.single_test ~= nil then
				command = offer.single_test(arguments.command)
			end
			if command == nil then
				error(why, 0)
			end
			command.seconds = offer.params.command_seconds
			-- The worktree is the attempt's own: building or testing in it twice does no harm.
			command.repeatable = true
			-- A command has a limit of its own, and may be silent for as long: what counts as silence is the model's.
			local ran = task.idle(offer.params.command_seconds + 60, function()
				return workplace.exec(offer.workplace, tree, command, offer.builds)
			end)
			local how = if ran.over == "exit" then `exit code {ran.exit}` else `ended by its limit: {ran.over}`
			return `{how}\n{workplace.localize(offer.workplace, tree, ran.output)}`
		end,
	},
} :: { kit.Tool }

return running
