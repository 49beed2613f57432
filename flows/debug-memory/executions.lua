--!strict
--- Runs the tests on what is committed, and records what came of it: an execution of the memory file, and what belongs to it.

local clock = require("@nietz/clock")
local commit_text = require("../common/commit_text")
local documents = require("@nietz/documents")
local environment = require("./environment")
local git = require("@nietz/git")
local guards = require("../common/guards/guards")
local json = require("@nietz/json")
local memory_files = require("./memory_files")
local model_calls = require("./model_calls")
local obstacles = require("../common/obstacles")
local programs = require("../common/programs")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local set_aside = require("./set_aside")
local show = require("./show")
local state = require("./state")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local executions = {}

--- The longest diff and the most failures that a memory file keeps for one execution.
local MAX_DIFF, MAX_FAILURES = 65536, 100
--- How much of what the tests write is read, in bytes.
local MAX_OUTPUT = 1048576

local function read_file(self: state.Session, path: string?): string?
	if path == nil then
		return nil
	end
	local ok, content = pcall(self.tree.read, self.tree, path)
	return if ok then content else nil
end

--- Returns the file that a failure points to: where it left the code under test, else the test.
local function file_of(latest: results.Results): string?
	for _, failure in latest.failures do
		local place = failure.source_location
		if place ~= nil and not report.is_test(place.file) then
			return place.file
		end
	end
	for _, failure in latest.failures do
		if failure.test_file ~= nil then
			return failure.test_file
		end
	end
	return nil
end

--- Runs the tests on a commit, in a clean worktree, and records them as the next execution. `tree_id` is git's digest of the
--- commit's files.
function executions.run(self: state.Session, commit: string, tree_id: string): results.Results
	local restored = guards.put_back(self.guards, self.tree)
	if #restored.tampered > 0 then
		ui.say(`The tests run with these as they were at the start: {table.concat(restored.tampered, ", ")}`)
	end
	local number = #self.doc.executions + 1
	ui.status(`attempt {number}: {self.params.test}`)
	local command = programs.resolve(self.limits, self.params.test) :: git.Command
	command.seconds = self.params.test_seconds
	command.repeatable = true
	command.output = MAX_OUTPUT
	local began = clock.unix()
	-- Only what the project itself builds is kept: what a model has written could spoil what is built for the next run.
	local ran = workplace.exec(self.workplace, self.tree, command, { keep = commit == self.start_commit })
	local took = math.max(0, math.round((clock.unix() - began) * 1000))
	ui.status("")
	local xml = read_file(self, self.params.junit)
	local latest = results.read(ran, self.tree.path, xml, function(glob: string): { string }
		return self.tree:find(glob).paths
	end)
	self.over_limit = if ran.over == "exit" then nil else ran.over
	if not latest.ran then
		local obstacle = obstacles.find(self.workplace, self.tree, self.params.test, ran)
		self.cannot_run = if obstacle ~= nil then obstacle.what else nil
	end
	if self.params.junit ~= nil and xml == nil then
		ui.say(`The command left no {self.params.junit} of up to 1 MB: what it wrote is read instead.`)
	elseif latest.cut then
		ui.say(`The output is long, and its middle is only in {ran.file}: --junit FILE counts more surely.`)
	end
	self.lcov = read_file(self, self.params.lcov)
	-- Files that the tests wrote are not part of a fix.
	self.tree:restore()
	local failures = json.array(table.clone(latest.failures))
	while #failures > MAX_FAILURES do
		table.remove(failures)
	end
	table.insert(self.doc.executions, {
		attempt = number,
		timestamp = clock.now(),
		-- Equal files have one hash, in every session.
		code_hash = text.sha256(tree_id),
		environment = environment.describe(self, latest),
		test_results = {
			total = latest.total,
			passed = latest.passed,
			failed = latest.failed,
			errors = latest.errors,
			skipped = latest.skipped,
			duration_ms = latest.duration_ms or took,
			coverage_percent = latest.coverage_percent,
		},
		failures = if #failures > 0 then failures else nil,
	})
	table.insert(self.results, latest)
	table.insert(self.commits, commit)
	table.insert(self.trees, tree_id)
	table.insert(self.outputs, ran.output .. (if ran.file then `\n[all of it: {ran.file}]` else ""))
	if self.doc.file_path == "unknown" then
		self.doc.file_path = file_of(latest) or self.doc.file_path
	end
	local counts = show.counts_line(latest)
	if number == 1 and self.cannot_run == nil then
		set_aside.say_unknown(self, latest.failures)
	end
	set_aside.apply(self, latest)
	memory_files.save(self)
	ui.say(`{if latest.verdict == "passed" then "✓" else "✗"} attempt {number}: {counts} ({latest.framework})`)
	return latest
end

--- Gives failures that the runner told no place of the place that the analysis names, where they are of its cause; and notes
--- that this place is the analysis' word.
local function place_failures(self: state.Session, latest: results.Results, value: model_calls.Analysis): boolean
	local placed = false
	local related: { [string]: boolean } = {}
	for _, name in value.related_failures or {} :: { string } do
		related[name] = true
	end
	for _, failure in latest.failures do
		if failure.source_location == nil and (related[failure.test_name] or #latest.failures == 1) then
			failure.source_location = { file = value.location.file, line = value.location.line }
			local own = state.own(self)
			own.placed_by_analysis = own.placed_by_analysis or {}
			table.insert(own.placed_by_analysis, { attempt = #self.doc.executions, test_name = failure.test_name })
			placed = true
		end
	end
	return placed
end

--- Puts an analysis into the last execution, with the place that it names.
function executions.keep_analysis(
	self: state.Session,
	latest: results.Results,
	value: model_calls.Analysis,
	similar: { documents.Document }?
)
	local number = #self.doc.executions
	local cause = value.root_cause
	if not place_failures(self, latest, value) then
		local place = value.location.file .. (if value.location.line then `:{value.location.line}` else "")
		local base = string.match(value.location.file, "([^/]+)$") or value.location.file
		cause = if string.find(cause, base, 1, true) ~= nil then cause else `{cause} ({place})`
	end
	self.doc.executions[number].analysis = {
		root_cause = cause,
		root_cause_category = value.root_cause_category,
		fix_strategy = value.fix_strategy,
		confidence = value.confidence,
		related_failures = value.related_failures,
		similar_past_issues = similar,
	}
	-- The session is about the first cause whose fix has held, until then about the latest.
	if self.params.file == nil and self.kept_commit == self.start_commit then
		self.doc.file_path = value.location.file
	end
	for _, issue in value.issues or {} :: { model_calls.Seen } do
		table.insert(self.issues, { attempt = number, issue = issue.issue, location = issue.location, severity = issue.severity })
	end
	if value.prevention ~= nil and table.find(self.recommendations, value.prevention) == nil then
		table.insert(self.recommendations, value.prevention)
	end
	memory_files.save(self)
	ui.say(`• cause ({value.root_cause_category}): {value.root_cause}`)
	ui.say(`• strategy: {value.fix_strategy}`)
end

--- Returns how many lines a patch adds and takes away, as `+5/-2 lines`.
local function diff_summary(patch: string): string
	local more, less = 0, 0
	for _, line in text.lines(patch) do
		if string.find(line, "^%+") ~= nil and string.find(line, "^%+%+%+ ") == nil then
			more += 1
		elseif string.find(line, "^%-") ~= nil and string.find(line, "^%-%-%- ") == nil then
			less += 1
		end
	end
	return `+{more}/-{less} lines`
end

--- Has a model make the fix for the last execution, and commits it; returns the commit and git's digest of its files.
function executions.make_fix(self: state.Session, latest: results.Results, value: model_calls.Analysis): (string, string)
	local number = #self.doc.executions
	local before = self.commits[number]
	local how, said = model_calls.fix(self, latest, value)
	self.late = how == "timeout"
	local made = self.tree:commit(`{commit_text.message(value.fix_strategy)}\n\nDebug session {self.doc.session_id}, attempt {number}`)
	local commit = made.commit
	local patch = if commit ~= before then git.diff(before, commit).patch else ""
	self.doc.executions[number].fix_applied = {
		description = if commit == before then `nothing was changed: {said}` else said,
		diff_summary = diff_summary(patch),
		files_changed = git.changed(before, commit),
		diff = if patch ~= "" then string.sub(patch, 1, MAX_DIFF) else nil,
		verification = "pending",
	}
	local name, template = value.pattern, value.fix_template
	for _, known in self.known_patterns do
		if known.pattern == value.applied then
			name, template = known.pattern, known.template
			local own = state.own(self)
			own.applied_templates = own.applied_templates or {}
			table.insert(own.applied_templates, { attempt = number, pattern = name })
		end
	end
	self.fix_patterns[number] = { name = name, category = value.root_cause_category, template = template }
	self.doc.metadata.ralph_iteration = (self.doc.metadata.ralph_iteration or 0) + 1
	memory_files.save(self)
	return commit, made.tree
end

--- Records whether a fix did what it was for, and if not all of it, what it mended.
function executions.record_verification(self: state.Session, number: number, passed: boolean, note: string?)
	local fix = self.doc.executions[number].fix_applied
	fix.verification = if passed then "passed" else "failed"
	if note ~= nil then
		fix.description = `{fix.description}\n\n[{note}]`
	end
	memory_files.save(self)
end

return executions
