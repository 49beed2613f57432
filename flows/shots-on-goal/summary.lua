--!strict
--- What a session came to, read from its record: for each part its attempts, what it changed, its tests and its cost; how the
--- commands that validate ended, and which attempt was the best where none was good enough.

local git = require("@nietz/git")
local json = require("@nietz/json")
local leftovers = require("../common/leftovers")
local record = require("./record")
local results = require("../common/memory/results")

local summary = {}

type Row = record.Row

--- The rows of a session by table; results, usage and ends also by the id that they belong to.
export type Summary = {
	rows: { [string]: { Row } },
	results: { [number]: Row },
	usage: { [number]: Row },
	ends: { [number]: Row },
}

--- How the commands of a goal ended.
export type Checks = {
	--- How many there are, and how many of them exited with 0.
	count: number,
	passed: number,
	--- How many tests were executed and how many of them failed, in the commands whose tests can be counted.
	tests: number,
	failed: number,
	--- The commands whose tests cannot be counted.
	uncounted: { string },
	--- Their last runs, in the order of the steps: the command with its exit code, or nil where it was not run.
	runs: { { command: string, exit: number?, tests: number? } },
}

--- A goal as the table shows it.
export type Part = {
	goal: Row,
	depth: number,
	status: string,
	attempts: number,
	tokens: number,
	--- Nil where a price is not known.
	cost: number?,
	--- What its branch changed; nil where nothing was merged, or the commits are gone.
	stat: git.Stat?,
	checks: Checks,
}

local TABLES = {
	"session",
	"goal",
	"validation_step",
	"branch",
	"worktree",
	"attempt",
	"attempt_result",
	"attempt_usage",
	"validation_run",
	"merge",
	"goal_end",
	"session_end",
}

local function by(rows: { Row }, column: string): { [number]: Row }
	local found = {}
	for _, row in rows do
		found[row[column]] = row
	end
	return found
end

--- Reads the rows of all tables that a summary needs.
function summary.read(session: string): Summary
	local rows = {}
	for _, name in TABLES do
		rows[name] = record.rows(session, name)
	end
	-- Attempts side by side are written when their worktrees are there; their ids say which began first.
	table.sort(rows.attempt, function(a, b)
		return a.id < b.id
	end)
	return {
		rows = rows,
		results = by(rows.attempt_result, "attempt_id"),
		usage = by(rows.attempt_usage, "attempt_id"),
		ends = by(rows.goal_end, "goal_id"),
	}
end

--- Returns the status of a goal: `open` where it has not ended.
function summary.status_of(all: Summary, goal: Row): string
	local ended = all.ends[goal.id]
	return if ended then ended.status else "open"
end

--- Returns the attempts at a goal, in the order in which they began.
function summary.attempts_at(all: Summary, goal: Row): { Row }
	local found = {}
	for _, attempt in all.rows.attempt do
		if attempt.goal_id == goal.id then
			table.insert(found, attempt)
		end
	end
	return found
end

--- Returns the branch of a goal: of a part that was begun again the last, of the root the first, beside which a squashed one may
--- stand.
local function branch_of(all: Summary, goal: Row): Row?
	local found: Row? = nil
	for _, branch in all.rows.branch do
		if branch.reason == "goal" and branch.created_by_goal_id == goal.id then
			found = branch
			if goal.parent_goal_id == json.null then
				break
			end
		end
	end
	return found
end

--- Returns the branch of an attempt.
function summary.attempt_branch(all: Summary, attempt: Row): Row?
	local worktree = all.rows.worktree[attempt.worktree_id]
	return if worktree then all.rows.branch[worktree.branch_id] else nil
end

--- Returns the last merge onto a branch.
local function last_merge(all: Summary, branch: Row): Row?
	for index = #all.rows.merge, 1, -1 do
		local merge = all.rows.merge[index]
		if merge.to_branch_id == branch.id then
			return merge
		end
	end
	return nil
end

--- Returns the attempt whose work was merged onto a goal's own branch at last; nil where that came from its parts, or nothing did.
function summary.merged_attempt(all: Summary, goal: Row): Row?
	local branch = branch_of(all, goal)
	if branch == nil then
		return nil
	end
	local by_branch: { [number]: Row } = {}
	for _, attempt in summary.attempts_at(all, goal) do
		local from = summary.attempt_branch(all, attempt)
		if from ~= nil then
			by_branch[from.id] = attempt
		end
	end
	local merged: Row? = nil
	for _, merge in all.rows.merge do
		if merge.to_branch_id == branch.id then
			-- What a part takes in from its goal's branch is nobody's attempt at it.
			merged = by_branch[merge.from_branch_id] or merged
		end
	end
	return merged
end

--- Returns what a goal has changed: a part by its merge, so that what others have merged meanwhile is not in it; else its branch
--- since that began.
local function stat_of(all: Summary, goal: Row): git.Stat?
	local branch = branch_of(all, goal)
	if branch == nil then
		return nil
	end
	local last = last_merge(all, branch)
	local from, to = branch.parent_commit_sha, if last then last.result_commit_sha else nil
	for _, merge in all.rows.merge do
		if merge.from_branch_id == branch.id and goal.parent_goal_id ~= json.null then
			local parent = all.rows.goal[goal.parent_goal_id]
			local into = if parent then branch_of(all, parent) else nil
			if into ~= nil and into.id == merge.to_branch_id then
				from, to = merge.to_commit_sha, merge.result_commit_sha
			end
		end
	end
	if to == nil then
		return nil
	end
	local ok, stat = leftovers.try(function()
		return git.stat(from, to)
	end)
	return if ok then stat else nil
end

--- Returns how the commands of a goal ended, by the runs for one result.
local function checks_of(all: Summary, goal: Row, result_id: number?): Checks
	local checks: Checks = { count = 0, passed = 0, tests = 0, failed = 0, uncounted = {}, runs = {} }
	for _, step in all.rows.validation_step do
		if step.goal_id ~= goal.id then
			continue
		end
		checks.count += 1
		local last: Row? = nil
		for _, run in all.rows.validation_run do
			if run.validation_step_id == step.id and run.attempt_result_id == result_id then
				last = run
			end
		end
		local entry = { command = step.command, exit = nil :: number?, tests = nil :: number? }
		table.insert(checks.runs, entry)
		if last ~= nil then
			entry.exit = last.exit_code
			checks.passed += if last.exit_code == 0 then 1 else 0
			local report = results.parse(last.output)
			if report ~= nil then
				entry.tests = report.total - report.skipped
				checks.tests += entry.tests :: number
				checks.failed += report.failed
			else
				table.insert(checks.uncounted, step.command)
			end
		end
	end
	return checks
end

--- Returns the result whose runs say how the commands of a goal ended: that of the attempt which was merged, or else the last
--- for which they ran.
local function judged_result(all: Summary, goal: Row): number?
	local merged = summary.merged_attempt(all, goal)
	local result = if merged then all.results[merged.id] else nil
	if result ~= nil then
		return result.id
	end
	local steps = by(all.rows.validation_step, "id")
	local last: number? = nil
	for _, run in all.rows.validation_run do
		local step = steps[run.validation_step_id]
		if step ~= nil and step.goal_id == goal.id then
			last = run.attempt_result_id
		end
	end
	return last
end

--- Returns how the commands of a goal ended; where it has none of its own, those of its parts together.
function summary.checks(all: Summary, goal: Row): Checks
	local checks = checks_of(all, goal, judged_result(all, goal))
	if checks.count > 0 then
		return checks
	end
	for _, part in all.rows.goal do
		if part.parent_goal_id == goal.id then
			local of_part = summary.checks(all, part)
			checks.count += of_part.count
			checks.passed += of_part.passed
			checks.tests += of_part.tests
			checks.failed += of_part.failed
			table.move(of_part.uncounted, 1, #of_part.uncounted, #checks.uncounted + 1, checks.uncounted)
			table.move(of_part.runs, 1, #of_part.runs, #checks.runs + 1, checks.runs)
		end
	end
	return checks
end

local function add_parts(all: Summary, parent: any, depth: number, parts: { Part })
	for _, goal in all.rows.goal do
		if goal.parent_goal_id ~= parent then
			continue
		end
		local tokens, attempts = 0, summary.attempts_at(all, goal)
		local cost = 0 :: number?
		for _, attempt in attempts do
			local usage = all.usage[attempt.id]
			if usage ~= nil then
				tokens += usage.input_tokens + usage.output_tokens
				cost = if cost and usage.cost then cost + usage.cost else nil
			end
		end
		table.insert(parts, {
			goal = goal,
			depth = depth,
			status = summary.status_of(all, goal),
			attempts = #attempts,
			tokens = tokens,
			cost = cost,
			stat = stat_of(all, goal),
			checks = summary.checks(all, goal),
		})
		add_parts(all, goal.id, depth + 1, parts)
	end
end

--- Returns the goals as a table shows them: each above its parts.
function summary.parts(all: Summary): { Part }
	local parts = {}
	add_parts(all, json.null, 0, parts)
	return parts
end

--- Returns the tokens and the cost of the whole session; the cost is nil where a price is not known.
function summary.totals(all: Summary): (number, number?)
	local tokens, cost = 0, 0 :: number?
	for _, usage in all.rows.attempt_usage do
		tokens += usage.input_tokens + usage.output_tokens
		cost = if cost and usage.cost then cost + usage.cost else nil
	end
	return tokens, cost
end

--- Returns how many goals validated at their first, second … shot, by the order in which the shots began; and how many goals had
--- any.
function summary.passes_within(all: Summary): ({ number }, number)
	local first: { [number]: number }, shots: { [number]: number } = {}, {}
	local most, tried = 0, 0
	for _, attempt in all.rows.attempt do
		local result = all.results[attempt.id]
		if attempt.attempt_type == "implementation" and result ~= nil then
			local goal = attempt.goal_id
			tried += if shots[goal] == nil then 1 else 0
			shots[goal] = (shots[goal] or 0) + 1
			most = math.max(most, shots[goal])
			if result.status == "success" and first[goal] == nil then
				first[goal] = shots[goal]
			end
		end
	end
	local within = {}
	for k = 1, most do
		local passed = 0
		for _, shot in first do
			passed += if shot <= k then 1 else 0
		end
		table.insert(within, passed)
	end
	return within, tried
end

return summary
