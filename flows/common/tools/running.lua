--!strict
--- The tools with which a model runs commands in a worktree, and reads what they wrote.

local git = require("@nietz/git")
local kit = require("./kit")
local long_output = require("./long_output")
local programs = require("../programs")
local task = require("@nietz/task")
local workplace = require("../workplace")

local running = {}

--- How many long outputs are kept for a model to read on in.
local MOST_OUTPUTS = 3
--- How many files that validation takes from the start are named.
local MOST_NAMED = 10
--- What stands in front of those names.
local TAKEN_FROM_START = "[validation takes these as they were at the start, and not as they are here: "

--- Whether a result says that validation will see other files.
function running.is_marked(output: string): boolean
	return string.find(output, TAKEN_FROM_START, 1, true) ~= nil
end

--- Returns which protected files differ from the start commit, as a note; "" where none does.
local function note_protected(tree: git.Handle, protected: { start: string, globs: { string } }): string
	local found = tree:diff()
	local changed: { [string]: boolean } = {}
	for path in string.gmatch("\n" .. found.patch, "\n%-%-%- a/([^\t\n]+)") do
		changed[path] = true
	end
	if next(changed) == nil then
		return ""
	end
	local names: { string } = {}
	for _, glob in protected.globs do
		for _, path in git.files(protected.start, glob).paths do
			-- Of a diff that is too long, only the beginning is there.
			local differs = changed[path] or found.cut and tree:diff(path).patch ~= ""
			if differs and table.find(names, path) == nil then
				table.insert(names, path)
			end
		end
	end
	if #names == 0 then
		return ""
	end
	local more = if #names > MOST_NAMED then ` and {#names - MOST_NAMED} more` else ""
	return `\n{TAKEN_FROM_START}{table.concat(names, ", ", 1, math.min(#names, MOST_NAMED))}{more}]`
end

--- Takes back what a command of a model that only looks has changed; returns a note of it.
local function take_back(tree: git.Handle, desk: kit.Desk): string
	if tree:diff().patch == desk.looked_at then
		return ""
	end
	tree:restore()
	return "\n[what this has changed is taken back: you only look here]"
end

--- Returns what a command wrote, cut to its beginning, its end and what tells of errors; what is cut is kept.
local function show(desk: kit.Desk, output: string): string
	desk.ran += 1
	local lines, shown = long_output.show(output, desk.ran)
	if lines ~= nil then
		table.insert(desk.outputs, { number = desk.ran, lines = lines })
		if #desk.outputs > MOST_OUTPUTS then
			table.remove(desk.outputs, 1)
		end
	end
	return shown
end

running.TOOLS = {
	{
		name = "run",
		description = "Runs a command at the top of the repository and returns its exit code and output: a line of a shell, or where the task names commands, only those and single tests of them. A long output comes cut: read_output shows the rest.",
		parameters = { type = "object", required = { "command" }, properties = { command = { type = "string" } } },
		writes = true,
		run = function(tree, arguments, _, desk)
			local offer = desk.offer
			local command, why = programs.resolve(offer.params, arguments.command)
			if command == nil then
				error(why, 0)
			end
			command.seconds = offer.params.command_seconds
			command.output = long_output.MOST_KEPT
			-- The worktree is the attempt's own: building or testing in it twice does no harm.
			command.repeatable = true
			if not offer.writing and desk.looked_at == nil then
				desk.looked_at = tree:diff().patch
			end
			-- A command has a limit of its own, and may be silent for as long: what counts as silence is the model's.
			local ran = task.idle(offer.params.command_seconds + 60, function()
				return workplace.exec(offer.workplace, tree, command, offer.builds, offer.writing)
			end)
			local how = if ran.over == "exit" then `exit code {ran.exit}` else `ended by its limit: {ran.over}`
			local shown = `{how}\n{show(desk, workplace.localize(offer.workplace, tree, ran.output))}`
			if not offer.writing then
				return shown .. take_back(tree, desk)
			elseif offer.protected ~= nil and table.find(offer.validates, arguments.command) ~= nil then
				return shown .. note_protected(tree, offer.protected)
			end
			return shown
		end,
	},
	{
		name = "read_output",
		description = "Returns more of a long output of run, each line behind its number and a tab: a part of it, or the lines that match.",
		parameters = {
			type = "object",
			properties = {
				number = { type = "integer", minimum = 1, description = "Which output; the last long one without it" },
				from_line = { type = "integer", minimum = 1 },
				lines = { type = "integer", minimum = 1, description = "300 without it" },
				pattern = { type = "string", description = "Only lines that match this regular expression" },
			},
		},
		writes = false,
		run = function(_, arguments, _, desk)
			for index = #desk.outputs, 1, -1 do
				local output = desk.outputs[index]
				if arguments.number == nil or arguments.number == output.number then
					return long_output.page(output.lines, arguments)
				end
			end
			local known = {}
			for _, output in desk.outputs do
				table.insert(known, tostring(output.number))
			end
			local which = if #known > 0 then "kept are: " .. table.concat(known, ", ") else "every output so far was shown whole"
			error(`there is no such output: {which}`, 0)
		end,
	},
} :: { kit.Tool }

return running
