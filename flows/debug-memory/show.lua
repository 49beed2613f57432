--!strict
--- A session as text, for `show` and for the person who must take over.

local documents = require("@nietz/documents")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local show = {}

local function first_line(value: string): string
	return text.truncate(string.split(value, "\n")[1] or "", 160)
end

--- Returns what a run of the tests came to, in one line.
function show.counts_line(results: documents.Document): string
	local parts = { `{results.passed} passed`, `{results.failed} failed` }
	if (results.skipped or 0) > 0 then
		table.insert(parts, `{results.skipped} skipped`)
	end
	if results.coverage_percent ~= nil then
		table.insert(parts, `{results.coverage_percent} % covered`)
	end
	return table.concat(parts, ", ")
end

--- Returns all of a session, line by line: each execution with its failures, analysis and fix.
function show.lines(doc: documents.Document): { string }
	local lines = { `session {doc.session_id}: {doc.status or "in_progress"}, {doc.file_path}` }
	for _, execution in doc.executions do
		table.insert(lines, "")
		table.insert(lines, `attempt {execution.attempt}, {execution.timestamp}: {show.counts_line(execution.test_results)}`)
		for _, failure in execution.failures or {} do
			local place = failure.source_location
			local where = if place ~= nil and place.file ~= nil then ` at {place.file}:{place.line or "?"}` else ""
			table.insert(lines, `  ✗ {failure.test_name}: {failure.error_type}{where}: {first_line(failure.error_message)}`)
		end
		local analysis, fix = execution.analysis, execution.fix_applied
		if analysis ~= nil then
			table.insert(lines, `  cause ({analysis.root_cause_category or "other"}): {analysis.root_cause}`)
			table.insert(lines, `  strategy: {analysis.fix_strategy}`)
			for _, past in analysis.similar_past_issues or {} do
				table.insert(lines, `  seen before in {past.file}: {past.resolution}`)
			end
		end
		if fix ~= nil then
			table.insert(
				lines,
				`  fix ({fix.verification or "pending"}, {fix.diff_summary or "no change"}): {string.gsub(fix.description, "\n", "\n    ")}`
			)
			for _, path in fix.files_changed or {} do
				table.insert(lines, `    {path}`)
			end
		end
	end
	local learnings = doc.learnings or {}
	for _, pattern in learnings.patterns_identified or {} do
		table.insert(
			lines,
			`pattern {pattern.pattern}: worked {math.round((pattern.effectiveness or 0) * pattern.frequency)} of {pattern.frequency} times`
		)
	end
	for _, row in learnings.recurring_failures or {} do
		table.insert(lines, `{row.test}: {string.gsub(row.resolution, "_", " ")}{if row.notes then `, {row.notes}` else ""}`)
	end
	for _, row in learnings.code_quality_issues or {} do
		table.insert(
			lines,
			`{row.severity or "seen"}, {if row.addressed then "addressed" else "open"}: {row.issue} ({row.location or "?"})`
		)
	end
	for _, line in learnings.recommendations or {} do
		table.insert(lines, `• {line}`)
	end
	local own = doc.nietz or {}
	if own.ended ~= nil then
		table.insert(lines, `ended: {own.ended.reason}`)
	end
	if own.report ~= nil then
		table.insert(lines, `report: {own.report}`)
	end
	return lines
end

--- Shows a session with all that it knows.
function show.session(doc: documents.Document)
	ui.say("```\n" .. table.concat(show.lines(doc), "\n") .. "\n```")
end

--- Tells a person that a session needs one, with all that it knows.
function show.escalation(doc: documents.Document)
	ui.say("**This needs a person.** All that the session knows:")
	show.session(doc)
end

return show
