--!strict
--- A session as text: lines while it runs, and the whole from its record.

local amounts = require("./amounts")
local git = require("@nietz/git")
local guards = require("../common/guards/guards")
local json = require("@nietz/json")
local parts_table = require("./parts_table")
local progress = require("./progress")
local record = require("./record")
local summary = require("./summary")
local text = require("@nietz/text")
local tools = require("../common/tools")
local ui = require("@nietz/ui")

local show = {}

--- How many changed files are named.
local MOST_FILES = 30

local mark, first_line = progress.mark, progress.first_line

local function usage_text(calls: number, tokens: number, cost: number?): string
	return `{amounts.count(calls, "tool")}, {tokens} tokens` .. (if cost then `, {amounts.cost(cost)}` else "")
end

--- Returns one line for an attempt that is over.
function show.attempt_line(
	target: { id: number },
	outcome: { id: number, model: string, status: string, detail: string, used: tools.Usage }
): string
	local used = usage_text(outcome.used.calls, outcome.used.input + outcome.used.output, outcome.used.cost)
	local who = `goal {target.id}, attempt {outcome.id} ({outcome.model}, {used})`
	return `{mark(outcome.status)} {who}: {outcome.status} · {first_line(outcome.detail)}`
end

local function add_goal_lines(all: summary.Summary, parent: number?, indent: string, lines: { string })
	for _, goal in all.rows.goal do
		if goal.parent_goal_id == parent then
			local status = summary.status_of(all, goal)
			local why = if status == "not_started" then ` (not started: {first_line(all.ends[goal.id].status_detail)})` else ""
			table.insert(lines, `{indent}{mark(status)} goal {goal.id}: {first_line(goal.goal_text)}{why}`)
			for _, attempt in all.rows.attempt do
				if attempt.goal_id == goal.id then
					local result, usage = all.results[attempt.id], all.usage[attempt.id]
					local how = if result then `{result.status} · {first_line(result.status_detail)}` else "under way"
					local used = if usage
						then ", " .. usage_text(usage.tool_calls, usage.input_tokens + usage.output_tokens, usage.cost)
						else ""
					local sign = if result then mark(result.status) else "•"
					table.insert(lines, `{indent}    {sign} {attempt.attempt_type} {attempt.id} ({attempt.model}{used}): {how}`)
				end
			end
			add_goal_lines(all, goal.id, indent .. "  ", lines)
		end
	end
end

--- Returns what the session cost and brought, as lines.
local function cost_lines(all: summary.Summary): { string }
	local lines, reached = {}, 0
	local tokens, cost = summary.totals(all)
	for _, goal in all.rows.goal do
		reached += if summary.status_of(all, goal) == "success" then 1 else 0
	end
	local money = if cost then `, {amounts.cost(cost)}` else ", a price is not known"
	local each = "no goal reached"
	if reached == 1 then
		each = "1 goal reached"
	elseif reached > 1 then
		local share = if cost and cost > 0 then ` and {amounts.cost(cost / reached)}` else ""
		each = `{math.round(tokens / reached)} tokens{share} for each of {amounts.count(reached, "goal")} reached`
	end
	table.insert(lines, `{tokens} tokens{money}, {each}`)
	-- Attempts of the model that tried a goal first count as alone; those of the other model come after it.
	local seen, counts = {}, {} :: { [string]: { [string]: number } }
	for _, attempt in all.rows.attempt do
		local result = all.results[attempt.id]
		if attempt.attempt_type == "implementation" and result ~= nil then
			local count = counts[attempt.model] or { alone = 0, alone_of = 0, after = 0, after_of = 0 }
			counts[attempt.model] = count
			local kind = if seen[attempt.goal_id] and seen[attempt.goal_id] ~= attempt.model then "after" else "alone"
			seen[attempt.goal_id] = seen[attempt.goal_id] or attempt.model
			count[kind .. "_of"] += 1
			count[kind] += if result.status == "success" then 1 else 0
		end
	end
	local within, tried = summary.passes_within(all)
	local passes = {}
	for k = 1, math.min(#within, 5) do
		table.insert(passes, `pass@{k} {within[k]} of {tried}`)
	end
	if #passes > 0 then
		table.insert(lines, "goals whose shot validated: " .. table.concat(passes, ", "))
	end
	local models = {}
	for model in counts do
		table.insert(models, model)
	end
	table.sort(models)
	for _, model in models do
		local count = counts[model]
		table.insert(lines, `{model}: {count.alone} of {count.alone_of} alone, {count.after} of {count.after_of} after the other`)
	end
	return lines
end

--- Shows what in a change would start by itself, such as build scripts: somebody should look at it before it is merged.
function show.autostarts(from: string, to: string)
	local brings = git.brings(from, to)
	local unreadable = guards.notices(from, to)
	if #brings.things == 0 and #unreadable == 0 then
		return
	end
	local lines = { "Look at this before you merge it:", "" }
	for _, thing in brings.things do
		table.insert(lines, "- " .. thing.text)
	end
	for _, notice in unreadable do
		table.insert(lines, "- " .. notice)
	end
	if brings.cut then
		table.insert(lines, "- … and more")
	end
	ui.say(table.concat(lines, "\n"))
end

--- Returns the table of parts as lines. The part itself stands last: in a narrow terminal the numbers stay below each other.
local function part_lines(all: summary.Summary): { string }
	local rows: { { string } } = { table.clone(parts_table.HEAD) }
	for _, cells in parts_table.rows(all) do
		table.insert(rows, cells)
	end
	local widths: { number } = {}
	for _, cells in rows do
		for column, cell in cells do
			widths[column] = math.max(widths[column] or 0, text.width(cell))
		end
	end
	local lines = {}
	for _, cells in rows do
		local out = {}
		for column = 2, #cells do
			local room = string.rep(" ", widths[column] - text.width(cells[column]))
			-- The status is a word, the others are numbers.
			table.insert(out, if column == 2 then cells[column] .. room else room .. cells[column])
		end
		table.insert(out, cells[1])
		table.insert(lines, table.concat(out, "  "))
	end
	return lines
end

--- Returns which files a session has changed, as git shows it, or nothing where it has changed none.
local function stat_lines(all: summary.Summary): { string }
	local root = all.rows.goal[1]
	local stat = if root then summary.parts(all)[1].stat else nil
	return if stat then parts_table.stat_lines(stat, MOST_FILES) else {}
end

--- Shows a session and what it came to.
function show.session(session: string)
	local all = summary.read(session)
	local row = all.rows.session[1]
	local lines = { `session {session}, {row.timestamp}`, `models {row.model_a} and {row.model_b}, for {row.base_branch}`, "" }
	add_goal_lines(all, json.null, "", lines)
	for _, part in { part_lines(all), stat_lines(all), cost_lines(all) } do
		if #part > 0 then
			table.insert(lines, "")
			table.move(part, 1, #part, #lines + 1, lines)
		end
	end
	local root = all.rows.goal[1]
	if root ~= nil then
		table.insert(lines, parts_table.checks_text(summary.checks(all, root)))
	end
	local ended = all.rows.session_end[1]
	table.insert(lines, if ended then `{ended.final_status}: {ended.status_detail}` else `not ended: nietz resume {session}`)
	ui.say("```\n" .. table.concat(lines, "\n") .. "\n```")
end

--- Lists the sessions.
function show.list()
	local sessions = record.sessions()
	if #sessions == 0 then
		ui.say("There is no session in this workspace yet.")
		return
	end
	local lines = {}
	for _, found in sessions do
		local ended = record.rows(found.session, "session_end")[1]
		local how = if ended then ended.final_status else "not ended"
		table.insert(
			lines,
			`{if ended then mark(how) else "•"} {found.session}  {found.row.timestamp}  {how}: {first_line(found.row.initial_goal)}`
		)
	end
	ui.say("```\n" .. table.concat(lines, "\n") .. "\n```")
end

return show
