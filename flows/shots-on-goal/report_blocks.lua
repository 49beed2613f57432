--!strict
--- What `nietz report` shows of a session: the tree of goals and attempts, what validated, what was changed, and how to merge it.

local nietz = require("@nietz")

local report_blocks = {}

--- How a status is shown in a tree.
local SHOWN: { [string]: string } =
	{ success = "good", failed = "bad", error = "bad", timeout = "bad", tool_limit = "bad", not_started = "open", completed = "bad" }
--- The most letters of a goal in the tree; all of it stands below.
local LONGEST = 160

--- Returns the rows of a table that the run wrote.
local function rows(run: nietz.Recorded, name: string): { any }
	local all = {}
	local documents: { any } = run.documents[name] or {}
	for _, document in documents do
		for _, row in document.rows or {} do
			table.insert(all, row)
		end
	end
	return all
end

--- Returns rows by the value of a column, which each has once.
local function by(list: { any }, column: string): { [any]: any }
	local found = {}
	for _, row in list do
		found[row[column]] = row
	end
	return found
end

--- Returns the first line of a text, or as much of it as a tree shows.
local function short(text: string): string
	local first = string.match(text, "^[^\n]*") or text
	local over = utf8.offset(first, LONGEST + 1)
	return if over ~= nil and #first >= over then string.sub(first, 1, over - 1) .. "…" else first
end

local function attempt_node(attempt: any, results: { [any]: any }, usages: { [any]: any }): nietz.TreeNode
	local result, usage = results[attempt.id], usages[attempt.id]
	local status = if result ~= nil then result.status else nil
	local cost = if usage ~= nil and usage.cost ~= nil then string.format(", $%.4f", usage.cost) else ""
	local used = if usage ~= nil
		then ` · {usage.input_tokens + usage.output_tokens} tokens, {usage.tool_calls} tool {if usage.tool_calls == 1
			then "call"
			else "calls"}{cost}`
		else ""
	local detail = if result ~= nil then short(result.status_detail) else "has no result"
	return {
		name = `attempt {attempt.id}: {attempt.model}, {attempt.attempt_type}`,
		status = if status ~= nil then SHOWN[status] or "open" else "open",
		note = detail .. used,
	}
end

local function goal_tree(run: nietz.Recorded, results: { [any]: any }): nietz.Block
	local goals, attempts = rows(run, "goal"), rows(run, "attempt")
	local ends, usages = by(rows(run, "goal_end"), "goal_id"), by(rows(run, "attempt_usage"), "attempt_id")
	local roots: { nietz.TreeNode } = {}
	local nodes: { [any]: nietz.TreeNode } = {}
	for _, goal in goals do
		local over = ends[goal.id]
		local children: { nietz.TreeNode } = {}
		for _, attempt in attempts do
			if attempt.goal_id == goal.id then
				table.insert(children, attempt_node(attempt, results, usages))
			end
		end
		local node: nietz.TreeNode = {
			name = short(goal.goal_text),
			status = if over ~= nil then SHOWN[over.status] or "open" else "open",
			note = if over ~= nil then short(over.status_detail) else nil,
			nodes = children,
		}
		nodes[goal.id] = node
		local parent = if goal.parent_goal_id ~= nil then nodes[goal.parent_goal_id] else nil
		table.insert(if parent ~= nil then parent.nodes :: { nietz.TreeNode } else roots, node)
	end
	return { type = "tree", title = "Goals and attempts", nodes = roots } :: any
end

local function validations(run: nietz.Recorded, results: { any }): nietz.Block?
	local steps, list = by(rows(run, "validation_step"), "id"), {}
	local attempt_of = {}
	for _, result in results do
		attempt_of[result.id] = result.attempt_id
	end
	for _, validation in rows(run, "validation_run") do
		local step = steps[validation.validation_step_id]
		local exit = if validation.exit_code ~= nil then validation.exit_code else "none"
		table.insert(list, { attempt_of[validation.attempt_result_id] or "", if step ~= nil then step.command else "", exit } :: { any })
	end
	if #list == 0 then
		return nil
	end
	return { type = "table", title = "Validations", columns = { "attempt", "command", "exit" }, rows = list } :: any
end

--- Returns the blocks of a session.
function report_blocks.of(run: nietz.Recorded): { nietz.Block }
	local session = rows(run, "session")[1]
	if session == nil then
		return {}
	end
	local session_end = rows(run, "session_end")[1]
	local results = rows(run, "attempt_result")
	local by_attempt = by(results, "attempt_id")
	local cards = {
		{
			name = "Goal",
			value = if session_end ~= nil then session_end.final_status else "open",
			note = if session_end ~= nil then session_end.status_detail else nil,
		},
		{ name = "Attempts", value = #rows(run, "attempt") },
		{ name = "Models", value = session.model_a, note = session.model_b },
	}
	local blocks: { nietz.Block } = { { type = "cards", cards = cards } :: any }
	if session_end ~= nil and session_end.final_status == "success" then
		local branch = by(rows(run, "branch"), "id")[session_end.branch_id]
		if branch ~= nil then
			local text = `\`\`\`\ngit merge --no-ff {branch.name}\n\`\`\``
			table.insert(blocks, { type = "text", title = "Take it", text = text } :: any)
		end
	end
	table.insert(blocks, goal_tree(run, by_attempt))
	local validated = validations(run, results)
	if validated ~= nil then
		table.insert(blocks, validated)
	end
	for _, result in results do
		if result.diff ~= "" then
			table.insert(blocks, { type = "diff", title = `What attempt {result.attempt_id} changed`, diff = result.diff } :: any)
		end
	end
	return blocks
end

return report_blocks
