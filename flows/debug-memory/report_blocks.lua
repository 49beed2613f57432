--!strict
--- What `nietz report` shows of a session: the failures by round, what was said of their cause, which fixes held, and what was
--- recalled of earlier sessions.

local nietz = require("@nietz")

local report_blocks = {}

local function curve(executions: { any }): nietz.Block
	local steps, passed, failed = {}, {}, {}
	for _, execution in executions do
		table.insert(steps, tostring(execution.attempt))
		table.insert(passed, execution.test_results.passed)
		table.insert(failed, execution.test_results.failed)
	end
	local lines = { { name = "passed", values = passed }, { name = "failed", values = failed } }
	return { type = "curve", title = "Tests by round", steps = steps, lines = lines } :: any
end

local function failures(executions: { any }): nietz.Block?
	local list = {}
	for _, execution in executions do
		for _, failure in execution.failures or {} do
			local place = failure.source_location
			local at = if place ~= nil and place.file ~= nil then `{place.file}:{place.line or "?"}` else failure.test_file or ""
			table.insert(list, { execution.attempt, failure.test_name, failure.error_type, failure.error_message, at } :: { any })
		end
	end
	if #list == 0 then
		return nil
	end
	return { type = "table", title = "Failures", columns = { "round", "test", "kind", "message", "where" }, rows = list } :: any
end

local function fixes(executions: { any }): nietz.Block?
	local events = {}
	for _, execution in executions do
		local analysis, fix = execution.analysis, execution.fix_applied
		if analysis ~= nil or fix ~= nil then
			local parts = {}
			if analysis ~= nil then
				table.insert(parts, `**{analysis.root_cause_category or "cause"}**: {analysis.root_cause}`)
			end
			if fix ~= nil then
				table.insert(parts, `{fix.description} ({fix.diff_summary or ""} {fix.verification or "pending"})`)
			end
			table.insert(events, { at = `round {execution.attempt}`, text = table.concat(parts, "\n\n") })
		end
	end
	return if #events > 0 then { type = "timeline", title = "Causes and fixes", events = events } :: any else nil
end

local function recalled(executions: { any }): nietz.Block?
	local list = {}
	for _, execution in executions do
		for _, past in (execution.analysis or {}).similar_past_issues or {} do
			table.insert(list, { execution.attempt, past.file or "", past.resolution or "", past.session_id or "" } :: { any })
		end
	end
	if #list == 0 then
		return nil
	end
	return { type = "table", title = "What was recalled", columns = { "round", "file", "what helped", "session" }, rows = list } :: any
end

--- Returns the blocks of a session.
function report_blocks.of(run: nietz.Recorded): { nietz.Block }
	local sessions = run.documents.debug_memory
	if sessions == nil or #sessions == 0 then
		return {}
	end
	local session = sessions[#sessions].value
	local executions: { any } = session.executions or {}
	local own = session.nietz or {}
	local cards = {
		{ name = "Status", value = session.status or "", note = if own.ended ~= nil then own.ended.reason else nil },
		{ name = "Rounds", value = #executions },
	}
	local result = run.result
	if type(result) == "table" and result.branch ~= nil then
		table.insert(cards, { name = "Branch", value = result.branch } :: any)
	end
	local blocks: { nietz.Block } = { { type = "cards", cards = cards } :: any }
	if #executions > 1 then
		table.insert(blocks, curve(executions))
	end
	for _, block in { fixes(executions) :: any, failures(executions) :: any, recalled(executions) :: any } do
		table.insert(blocks, block)
	end
	for _, execution in executions do
		local fix = execution.fix_applied
		if fix ~= nil and fix.diff ~= nil and fix.diff ~= "" then
			table.insert(blocks, { type = "diff", title = `What round {execution.attempt} changed`, diff = fix.diff } :: any)
		end
	end
	return blocks
end

return report_blocks
