--!strict
--- Shows the goal tree in the terminal, with what each attempt does now; redrawn at each change.

local state = require("./state")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local progress = {}

--- The widest line; the terminal cuts what does not fit.
local WIDEST = 100
--- How many attempts at one goal are shown, the latest.
local ATTEMPTS = 4

progress.MARKS = { success = "✓", open = "•", not_started = "•" } :: { [string]: string }

--- Returns the mark of a status: ✓ reached, • open, ✗ anything else.
function progress.mark(status: string): string
	return progress.MARKS[status] or "✗"
end

--- Returns the first line of a text, cut.
function progress.first_line(value: string): string
	return text.truncate(string.split(value, "\n")[1] or "", 120)
end

local function add_goal_lines(goal: state.Goal, indent: string, lines: { string })
	table.insert(lines, text.truncate(`{indent}{progress.mark(goal.status)} goal {goal.id}: {progress.first_line(goal.text)}`, WIDEST))
	-- A goal that is over is one line: how it ended was shown already.
	if goal.status ~= "open" then
		return
	end
	for index = math.max(1, #goal.shots - ATTEMPTS + 1), #goal.shots do
		local shot = goal.shots[index]
		table.insert(lines, text.truncate(`{indent}    {progress.mark(shot.status)} {shot.name}: {shot.activity}`, WIDEST))
	end
	for _, child in goal.children do
		add_goal_lines(child, indent .. "  ", lines)
	end
end

--- Returns the tree below a goal as lines.
function progress.tree_lines(root: state.Goal): { string }
	local lines = {}
	add_goal_lines(root, "", lines)
	return lines
end

local function draw(self: state.Session)
	if self.root ~= nil then
		ui.status(table.concat(progress.tree_lines(self.root), "\n"))
	end
end

--- Adds an attempt, a breakdown or a validation below its goal.
function progress.begin(self: state.Session, goal: state.Goal, name: string): state.Shot
	local shot = { name = name, status = "open", activity = "begins" }
	table.insert(goal.shots, shot)
	draw(self)
	return shot
end

--- Shows what it does now.
function progress.update(self: state.Session, shot: state.Shot, what: string)
	shot.activity = what
	draw(self)
end

--- Shows how it ended.
function progress.finish(self: state.Session, shot: state.Shot, status: string)
	shot.status, shot.activity = status, string.gsub(status, "_", " ")
	draw(self)
end

--- Removes the tree from the terminal.
function progress.clear()
	ui.status("")
end

return progress
