--!strict
--- A session as text: lines while it runs, and the whole from its record.

local git = require("@nietz/git")
local guards = require("../common/guards/guards")
local json = require("@nietz/json")
local progress = require("./progress")
local record = require("./record")
local tools = require("../common/tools")
local ui = require("@nietz/ui")

local show = {}

--- The rows of a session by table; results, usage and ends also by the id that they belong to.
type Session = {
	rows: { [string]: { record.Row } },
	results: { [number]: record.Row },
	usage: { [number]: record.Row },
	ends: { [number]: record.Row },
}

local mark, first_line = progress.mark, progress.first_line

local function dollars(cost: number): string
	return if cost == 0 then "free" else string.format(if cost < 0.1 then "$%.4f" else "$%.2f", cost)
end

local function usage_text(calls: number, tokens: number, cost: number?): string
	return `{calls} tools, {tokens} tokens` .. (if cost then `, {dollars(cost)}` else "")
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

--- Reads the rows of all tables that a summary needs.
local function read_rows(session: string): Session
	local rows = {}
	for _, name in { "session", "goal", "attempt", "attempt_result", "attempt_usage", "goal_end", "session_end" } do
		rows[name] = record.rows(session, name)
	end
	local results, usage, ends = {}, {}, {}
	for _, row in rows.attempt_result do
		results[row.attempt_id] = row
	end
	for _, row in rows.attempt_usage do
		usage[row.attempt_id] = row
	end
	for _, row in rows.goal_end do
		ends[row.goal_id] = row
	end
	return { rows = rows, results = results, usage = usage, ends = ends }
end

--- Returns the status of a goal.
local function status_of(all: Session, goal: record.Row): string
	local ended = all.ends[goal.id]
	return if ended then ended.status else "open"
end

local function add_goal_lines(all: Session, parent: number?, indent: string, lines: { string })
	for _, goal in all.rows.goal do
		if goal.parent_goal_id == parent then
			local status = status_of(all, goal)
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
local function cost_lines(all: Session): { string }
	local lines, tokens, merged = {}, 0, 0
	local cost = 0 :: number?
	for _, usage in all.rows.attempt_usage do
		tokens += usage.input_tokens + usage.output_tokens
		cost = if cost and usage.cost then cost + usage.cost else nil
	end
	for _, goal in all.rows.goal do
		merged += if status_of(all, goal) == "success" then 1 else 0
	end
	local money = if cost then `, {dollars(cost)}` else ", a price is not known"
	local each = "no goal reached"
	if merged > 0 then
		local share = if cost and cost > 0 then ` and {dollars(cost / merged)}` else ""
		each = `{math.round(tokens / merged)} tokens{share} for each of {merged} goals reached`
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
	local shots, within = {} :: { [number]: number }, {} :: { [number]: number }
	local most, tried = 0, 0
	for _, attempt in all.rows.attempt do
		local result = all.results[attempt.id]
		if attempt.attempt_type == "implementation" and result ~= nil then
			local goal = attempt.goal_id
			tried += if shots[goal] == nil then 1 else 0
			shots[goal] = (shots[goal] or 0) + 1
			most = math.max(most, shots[goal])
			if result.status == "success" and within[goal] == nil then
				within[goal] = shots[goal]
			end
		end
	end
	local passes = {}
	for k = 1, math.min(most, 5) do
		local passed = 0
		for _, shot in within do
			passed += if shot <= k then 1 else 0
		end
		table.insert(passes, `pass@{k} {passed} of {tried}`)
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

--- Shows a session and what it came to.
function show.session(session: string)
	local all = read_rows(session)
	local row = all.rows.session[1]
	local lines = { `session {session}, {row.timestamp}`, `models {row.model_a} and {row.model_b}, from {row.base_branch}`, "" }
	add_goal_lines(all, json.null, "", lines)
	table.insert(lines, "")
	for _, line in cost_lines(all) do
		table.insert(lines, line)
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
