--!strict
--- Shows the goal tree in the terminal, with what each attempt does now, how long it has taken and what it has used; redrawn at each
--- change.

local amounts = require("./amounts")
local clock = require("@nietz/clock")
local state = require("./state")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local progress = {}

--- The widest line; the terminal cuts what does not fit.
local WIDEST = 100
--- How many attempts at one goal are shown, the latest.
local ATTEMPTS = 4

--- Of how many parts of a goal each has a line; of more, only those that are in work.
local FEW = 8
--- Where the others stand, and how their number is shown.
local STAGES = {
	{ name = "success", mark = "✓", shown = "reached" },
	{ name = "merged", mark = "✓", shown = "merged" },
	{ name = "reached", mark = "✓", shown = "to be merged" },
	{ name = "failed", mark = "✗", shown = "failed" },
	{ name = "not started", mark = "•", shown = "not started" },
	{ name = "not begun", mark = "•", shown = "not begun" },
	{ name = "to come", mark = "•", shown = "to come" },
}

progress.MARKS = { success = "✓", open = "•", not_started = "•" } :: { [string]: string }

--- Returns the mark of a status: ✓ reached, • open, ✗ anything else.
function progress.mark(status: string): string
	return progress.MARKS[status] or "✗"
end

--- Returns the first line of a text, cut.
function progress.first_line(value: string): string
	return text.truncate(string.split(value, "\n")[1] or "", 120)
end

--- Returns the line of an attempt; while it is under way, with its time and what it has used. What it does stands last, because a
--- terminal cuts what does not fit.
local function shot_line(shot: state.Shot, now: number): string
	local line = `{progress.mark(shot.status)} {shot.name}`
	if shot.status ~= "open" then
		return `{line}: {shot.activity}`
	end
	local parts = { amounts.duration(now - shot.began) }
	if shot.used ~= nil and shot.used.input + shot.used.output > 0 then
		table.insert(parts, amounts.used(shot.used.input + shot.used.output, shot.used.cost))
	end
	return `{line} · {table.concat(parts, ", ")}: {shot.activity}`
end

--- Returns what the session has used, attempts that are under way included.
local function used_so_far(self: state.Session, goal: state.Goal): (number, number?)
	local tokens, cost = 0, 0 :: number?
	for _, shot in goal.shots do
		if shot.status == "open" and shot.used ~= nil then
			tokens += shot.used.input + shot.used.output
			cost = if cost and shot.used.cost then cost + shot.used.cost else nil
		end
	end
	for _, child in goal.children do
		local of_child, cost_of_child = used_so_far(self, child)
		tokens += of_child
		cost = if cost and cost_of_child then cost + cost_of_child else nil
	end
	return tokens, cost
end

local function add_goal_lines(goal: state.Goal, indent: string, now: number, lines: { string })
	table.insert(lines, text.truncate(`{indent}{progress.mark(goal.status)} goal {goal.id}: {progress.first_line(goal.text)}`, WIDEST))
	-- A goal that is over is one line: how it ended was shown already.
	if goal.status ~= "open" then
		return
	end
	for index = math.max(1, #goal.shots - ATTEMPTS + 1), #goal.shots do
		local shot = goal.shots[index]
		table.insert(lines, text.truncate(`{indent}    {shot_line(shot, now)}`, WIDEST))
	end
	local counts: { [string]: number } = {}
	for _, child in goal.children do
		if #goal.children <= FEW or child.status == "open" and child.stage == "in work" then
			add_goal_lines(child, indent .. "  ", now, lines)
		else
			local stage = if child.status == "open" then child.stage else string.gsub(child.status, "_", " ")
			counts[stage] = (counts[stage] or 0) + 1
		end
	end
	local parts = {}
	for _, stage in STAGES do
		if counts[stage.name] ~= nil then
			table.insert(parts, `{stage.mark} {counts[stage.name]} {stage.shown}`)
		end
	end
	if #parts > 0 then
		table.insert(lines, `{indent}  {table.concat(parts, "  ")}`)
	end
end

local function draw(self: state.Session)
	local root = self.root
	if root == nil then
		return
	end
	local now = clock.unix()
	local lines = {}
	add_goal_lines(root, "", now, lines)
	local tokens, cost = used_so_far(self, root)
	local all = if self.cost and cost then self.cost + cost else nil
	table.insert(lines, `{amounts.duration(now - self.started_at)}, {amounts.used(self.tokens + tokens, all)}`)
	ui.status(table.concat(lines, "\n"))
end

--- Adds an attempt, a breakdown or a validation below its goal; `used` is what its model uses as it goes on.
function progress.begin(
	self: state.Session,
	goal: state.Goal,
	name: string,
	used: { input: number, output: number, cost: number? }?
): state.Shot
	local shot: state.Shot = { name = name, status = "open", activity = "begins", began = clock.unix(), used = used }
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
