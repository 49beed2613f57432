--!strict
--- What is done when a session needs a person: a report with all that it knows, a notification, and one of the actions that
--- `--on-escalation` names.

local documents = require("@nietz/documents")
local best_effort = require("../common/best_effort")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local nietz = require("@nietz")
local show = require("./show")
local state = require("./state")
local ui = require("@nietz/ui")

local escalation = {}

--- The names of the specification's actions.
escalation.ACTIONS = { "human_review", "senior_agent", "abort_with_report", "flag_and_continue" }

--- The collection of reports, for the manifest.
escalation.REPORTS = {
	path = ".nietz/debug-memory/reports/{session_id}.md",
	format = "text",
	schema = { type = "string" },
} :: nietz.Collection

--- The most code of one execution that a memory file keeps; the report keeps all of it.
local MAX_SNAPSHOT = 1048576

--- Triggers after which another model may do better.
local FOR_A_SENIOR = { "max_attempts_reached", "stuck", "no_analysis", "timeout_exceeded", "regression_detected", "security_issue_found" }

--- Returns whether a stronger model gets a round of its own after this ending.
function escalation.is_for_a_senior(self: state.Session, ending: state.Ending): boolean
	local asked = self.params.on_escalation == "senior_agent" and not self.senior
	return asked and table.find(FOR_A_SENIOR, ending.trigger or "") ~= nil
end

--- Returns a block of Markdown that holds whatever stands in the text.
local function block(value: string): string
	local fence = "```"
	while string.find(value, fence, 1, true) ~= nil do
		fence ..= "`"
	end
	return `{fence}\n{value}{if string.sub(value, -1) == "\n" then "" else "\n"}{fence}`
end

--- Returns each file that the session has changed, as it is now.
local function changed_files(self: state.Session): { { path: string, text: string } }
	local files = {}
	local seen, paths = leftovers.try(function()
		return git.changed(self.start_commit, self.commits[#self.commits] or self.start_commit)
	end)
	for _, path in if seen then paths else {} do
		local ok, content = pcall(self.tree.read, self.tree, path)
		table.insert(files, { path = path, text = if ok then content else "[it is gone, or no text of up to 1 MB]" })
	end
	return files
end

--- Keeps the code as it is now with the last execution: each file that the session changed; where it changed none, the one that
--- it is about.
local function keep_code(self: state.Session)
	local last = self.doc.executions[#self.doc.executions]
	if last == nil then
		return
	end
	local parts = {}
	for _, file in changed_files(self) do
		table.insert(parts, `=== {file.path}\n{file.text}`)
	end
	if #parts == 0 then
		local ok, code = pcall(self.tree.read, self.tree, self.doc.file_path)
		if ok then
			parts[1] = `=== {self.doc.file_path}\n{code}`
		end
	end
	local code = table.concat(parts, "\n")
	last.code_snapshot = if code == "" then nil else string.sub(code, 1, MAX_SNAPSHOT)
end

--- Returns the report: why, what was tried, the change, the files that it left, and all that the tests wrote.
local function report_text(self: state.Session, ending: state.Ending): string
	local parts = {
		`# This needs a person: {state.reason(ending)}`,
		`Tests: \`{self.params.test}\`. Start: {self.start_commit}. Session: {self.doc.session_id}.`,
		"## What was tried",
		block(table.concat(show.lines(self.doc), "\n")),
	}
	local last = self.commits[#self.commits] or self.start_commit
	local seen, change = leftovers.try(function()
		return git.diff(self.start_commit, last)
	end)
	if seen and change.patch ~= "" then
		table.insert(parts, "## The change")
		table.insert(parts, block(change.patch))
	end
	for _, file in changed_files(self) do
		table.insert(parts, `## {file.path}, as it was left`)
		table.insert(parts, block(file.text))
	end
	for number, output in self.outputs do
		table.insert(parts, `## What the tests wrote, attempt {number}`)
		table.insert(parts, block(output))
	end
	return table.concat(parts, "\n\n") .. "\n"
end

--- Keeps all that the session knows: code with the memory file, and everything in a report, which the memory file names.
function escalation.preserve(self: state.Session, ending: state.Ending)
	keep_code(self)
	best_effort.run("", function(why: string): string
		return `There is no report of this session: {why}`
	end, function(): string
		local path = documents
			.collection("debug_memory_reports")
			:save(report_text(self, ending), { key = { session_id = self.doc.session_id }, overwrite = true })
		state.own(self).report = path
		ui.say(`All that was tried, the files and what the tests wrote: \`{path}\``)
		return path
	end)
end

--- Tells a person: here, where they are to look at it at once, and wherever their configuration says that they are.
function escalation.tell(self: state.Session, ending: state.Ending)
	if self.params.on_escalation ~= "abort_with_report" then
		show.escalation(self.doc)
	end
	nietz.notify({
		title = "Tests need a person",
		text = `{state.reason(ending)}\n{self.params.test}`,
		urgency = "high",
	})
end

return escalation
