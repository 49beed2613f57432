--!strict
--- The parts of a session, its commands and its files as rows and lines of text: the same in the terminal and in a report.

local amounts = require("./amounts")
local git = require("@nietz/git")
local progress = require("./progress")
local summary = require("./summary")
local text = require("@nietz/text")

local parts_table = {}

--- The longest name of a part, in letters.
local LONGEST = 50

--- How many commands are named whose tests cannot be counted.
local MAX_NAMED = 3

parts_table.HEAD = { "part", "status", "attempts", "files", "+/-", "tests", "tokens", "cost" }

--- Returns the cells of each goal, and of all of them together.
function parts_table.rows(all: summary.Summary): { { string } }
	local rows: { { string } } = {}
	local attempts = 0
	local parts = summary.parts(all)
	for _, part in parts do
		local stat, checks = part.stat, part.checks
		attempts += part.attempts
		table.insert(rows, {
			string.rep("  ", part.depth) .. `{part.goal.id}: {text.truncate(progress.first_line(part.goal.goal_text), LONGEST)}`,
			string.gsub(part.status, "_", " "),
			tostring(part.attempts),
			if stat then tostring(stat.count) else "-",
			if stat then `+{stat.added}/-{stat.deleted}` else "-",
			if checks.tests > 0 then tostring(checks.tests) else "-",
			if part.attempts > 0 then amounts.tokens(part.tokens) else "-",
			if part.attempts > 0 then amounts.cost(part.cost) else "-",
		})
	end
	if #parts > 1 then
		local tokens, cost = summary.totals(all)
		table.insert(rows, { "all", "", tostring(attempts), "", "", "", amounts.tokens(tokens), amounts.cost(cost) })
	end
	return rows
end

--- Returns the lines that say which files have changed and how much, at most so many files.
function parts_table.stat_lines(stat: git.Stat, most: number): { string }
	local widest = 0
	for index = 1, math.min(most, #stat.files) do
		widest = math.max(widest, text.width(stat.files[index].path))
	end
	local lines = {}
	for index = 1, math.min(most, #stat.files) do
		local file = stat.files[index]
		local room = string.rep(" ", widest - text.width(file.path))
		local from = if file.old_path then ` (was {file.old_path})` else ""
		local how = if file.added ~= nil then `+{file.added} -{file.deleted}` else "binary"
		table.insert(lines, ` {file.path}{room} | {how}{from}`)
	end
	if stat.count > #lines then
		table.insert(lines, ` and {stat.count - #lines} more`)
	end
	table.insert(lines, ` {amounts.count(stat.count, "file")} changed, {amounts.count(stat.added, "line")} added, {stat.deleted} deleted`)
	return lines
end

--- Returns one line that says how the commands of a goal ended: "2 of 2 commands passed, 148 tests executed".
function parts_table.checks_text(checks: summary.Checks): string
	if checks.count == 0 then
		return "no command validates this"
	end
	local said = `{checks.passed} of {amounts.count(checks.count, "command")} passed`
	if checks.tests > 0 then
		said ..= `, {amounts.count(checks.tests, "test")} executed`
	end
	local uncounted = checks.uncounted
	if #uncounted > 0 then
		local named = table.concat(uncounted, "`, `", 1, math.min(MAX_NAMED, #uncounted))
		local more = if #uncounted > MAX_NAMED then ` and {#uncounted - MAX_NAMED} more` else ""
		said ..= `; the tests of \`{named}\`{more} cannot be counted`
	end
	return said
end

return parts_table
