--!strict
--- The goal tree as it is now, with what each attempt is doing: in the terminal, redrawn while it works.

local state = require("./state")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local live = {}

--- The widest line; the terminal cuts what does not fit.
local WIDEST = 100
--- How many attempts at one goal are shown, the latest.
local ATTEMPTS = 4

live.MARKS = { success = "✓", open = "•", not_started = "•" } :: { [string]: string }

--- Returns the mark of a status: ✓ reached, • open, ✗ anything else.
function live.mark(status: string): string
	return live.MARKS[status] or "✗"
end

--- Returns the first line of a text, cut.
function live.first_line(value: string): string
	return text.truncate(string.split(value, "\n")[1] or "", 120)
end

local function add(goal: state.Goal, indent: string, lines: { string })
	table.insert(lines, text.truncate(`{indent}{live.mark(goal.state)} goal {goal.id}: {live.first_line(goal.text)}`, WIDEST))
	-- What is over is one line: the rest of it has been said.
	if goal.state ~= "open" then
		return
	end
	for index = math.max(1, #goal.shots - ATTEMPTS + 1), #goal.shots do
		local shot = goal.shots[index]
		table.insert(lines, text.truncate(`{indent}    {live.mark(shot.status)} {shot.name}: {shot.doing}`, WIDEST))
	end
	for _, child in goal.children do
		add(child, indent .. "  ", lines)
	end
end

--- Returns the tree below a goal as lines.
function live.tree(root: state.Goal): { string }
	local lines = {}
	add(root, "", lines)
	return lines
end

local function draw(self: state.Session)
	if self.root ~= nil then
		ui.status(table.concat(live.tree(self.root), "\n"))
	end
end

--- Puts something that works on a goal into the tree: an attempt, a breakdown, a validation.
function live.begin(self: state.Session, goal: state.Goal, name: string): state.Shot
	local shot = { name = name, status = "open", doing = "begins" }
	table.insert(goal.shots, shot)
	draw(self)
	return shot
end

--- Says what it is doing now.
function live.doing(self: state.Session, shot: state.Shot, what: string)
	shot.doing = what
	draw(self)
end

--- Says how it ended.
function live.over(self: state.Session, shot: state.Shot, status: string)
	shot.status, shot.doing = status, string.gsub(status, "_", " ")
	draw(self)
end

--- Takes the tree away.
function live.clear()
	ui.status("")
end

return live
