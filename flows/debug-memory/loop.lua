--!strict
--- The loop: execute, parse, analyse, fix, verify; until the tests pass, or a person is needed.

local clock = require("@nietz/clock")
local coverage = require("./coverage")
local git = require("@nietz/git")
local hooks = require("./hooks")
local json = require("@nietz/json")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local memory_files = require("./memory_files")
local model_calls = require("./model_calls")
local obstacles = require("../common/obstacles")
local programs = require("../common/programs")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local run_comparison = require("./run_comparison")
local show = require("./show")
local state = require("./state")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local loop = {}

--- How a session ended: the status of the schema, and the reason, which begins with what triggered it.
export type Ending = { status: string, reason: string }

--- The longest diff and the most failures that a memory file keeps for one execution.
local MAX_DIFF, MAX_FAILURES = 65536, 100
--- How much of what the tests write is read, in bytes.
local MAX_OUTPUT = 1048576

--- Returns a SHA-256 of the code as it is now: of the start commit, and of each file that differs from it.
local function code_hash(self: state.Session, commit: string): string
	local parts = { self.start_commit }
	for _, path in git.changed(self.start_commit, commit) do
		local ok, content = pcall(self.tree.read, self.tree, path)
		table.insert(parts, `{path}\0{if ok then text.sha256(content) else "gone"}`)
	end
	return text.sha256(table.concat(parts, "\n"))
end

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

--- Runs the tests on what is committed, in a clean worktree, and records them as the next execution.
local function run_tests(self: state.Session, commit: string): results.Results
	self.tree:restore(if #self.protected_globs > 0 then { from = self.start_commit, globs = self.protected_globs } else nil)
	local hash = code_hash(self, commit)
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
	local environment = {
		runtime = latest.runtime,
		runtime_version = latest.runtime_version,
		test_framework = latest.framework,
	}
	local failures = json.array(table.clone(latest.failures))
	while #failures > MAX_FAILURES do
		table.remove(failures)
	end
	table.insert(self.doc.executions, {
		attempt = number,
		timestamp = clock.now(),
		code_hash = hash,
		environment = environment,
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
	if self.doc.file_path == "unknown" then
		self.doc.file_path = file_of(latest) or self.doc.file_path
	end
	memory_files.save(self)
	ui.say(`{if latest.verdict == "passed" then "✓" else "✗"} attempt {number}: {show.counts_line(latest)} ({latest.framework})`)
	return latest
end

--- Puts an analysis into the last execution, with the place that it names.
local function keep_analysis(self: state.Session, value: model_calls.Analysis)
	local place = value.location.file .. (if value.location.line then `:{value.location.line}` else "")
	local base = string.match(value.location.file, "([^/]+)$") or value.location.file
	local named = string.find(value.root_cause, base, 1, true) ~= nil
	self.doc.executions[#self.doc.executions].analysis = {
		root_cause = if named then value.root_cause else `{value.root_cause} ({place})`,
		root_cause_category = value.root_cause_category,
		fix_strategy = value.fix_strategy,
		confidence = value.confidence,
		related_failures = value.related_failures,
		similar_past_issues = hooks.similar_issues(self),
	}
	if self.params.file == nil then
		self.doc.file_path = value.location.file
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

--- Has a model make the fix for the last execution, and commits it; returns the commit.
local function make_fix(self: state.Session, latest: results.Results, value: model_calls.Analysis): string
	local number = #self.doc.executions
	local before = self.commits[number]
	local _, said = model_calls.fix(self, latest, value)
	local commit = self.tree:commit(`{value.fix_strategy}\n\nDebug session {self.doc.session_id}, attempt {number}`).commit
	local patch = if commit ~= before then git.diff(before, commit).patch else ""
	self.doc.executions[number].fix_applied = {
		description = if commit == before then `nothing was changed: {said}` else said,
		diff_summary = diff_summary(patch),
		files_changed = git.changed(before, commit),
		diff = if patch ~= "" then string.sub(patch, 1, MAX_DIFF) else nil,
		verification = "pending",
	}
	self.fix_patterns[number] = { name = value.pattern, category = value.root_cause_category, template = value.fix_template }
	memory_files.save(self)
	return commit
end

--- Records whether a fix did what it was for, and if not all of it, what it mended.
local function record_verification(self: state.Session, number: number, passed: boolean, note: string?)
	local fix = self.doc.executions[number].fix_applied
	fix.verification = if passed then "passed" else "failed"
	if note ~= nil then
		fix.description = `{fix.description}\n\n[{note}]`
	end
	memory_files.save(self)
end

--- Returns how many failures a fix mended of those that it was for, as a note, if it did not mend all of them.
local function progress_note(before: results.Results, mended: { report.Failure }): string?
	if #mended == 0 or #mended == #before.failures then
		return nil
	end
	local names = list.map(mended, function(failure)
		return failure.test_name
	end)
	return `mended {#mended} of {#before.failures} failures: {table.concat(names, ", ", 1, math.min(#names, 5))}`
end

--- Returns the ending for results that leave nothing to fix, or nil.
local function ending_without_fix(latest: results.Results): Ending?
	if latest.verdict == "unverified" then
		return { status = "failed", reason = `unverified: {latest.skipped} tests were skipped, so it does not count as passed` }
	elseif latest.verdict == "empty" then
		return { status = "failed", reason = "nothing_executed: the command ran no test" }
	elseif latest.verdict == "unknown" then
		return { status = "escalated", reason = "unknown_results: no known test runner wrote this; --junit FILE reads its XML" }
	end
	return nil
end

local function try_fixes(self: state.Session): Ending
	local latest = run_tests(self, self.start_commit)
	if self.cannot_run ~= nil then
		return { status = "escalated", reason = `cannot_run: the tests cannot run here: {self.cannot_run}` }
	end
	local ended = ending_without_fix(latest)
	if ended ~= nil then
		return ended
	end
	if latest.verdict == "passed" and self.params.goal == nil then
		return { status = "passed", reason = "the tests pass as they are" }
	end
	local first, base, most = latest, latest, latest.total
	local fixes, attempts = 0, 0
	while attempts < self.params.max_attempts do
		attempts += 1
		fixes += 1
		hooks.run(self, "on_failure")
		local value, why = model_calls.analyse(self, latest)
		if value == nil then
			return { status = "escalated", reason = `no_analysis: {why}` }
		end
		keep_analysis(self, value)
		if not self.params.fix then
			return { status = "failed", reason = "analysed alone, as --no-fix asks" }
		end
		local number = #self.doc.executions
		local commit = make_fix(self, latest, value)
		if commit == self.commits[number] then
			record_verification(self, number, false)
			ui.say("✗ the model changed nothing")
			continue
		end
		local before = base
		latest = run_tests(self, commit)
		local regressed = run_comparison.regression(before, latest, most)
		if regressed ~= nil then
			-- What makes something worse, or takes tests away, mended nothing.
			record_verification(self, number, false, `regression: {regressed}`)
			return { status = "escalated", reason = `regression_detected: {regressed}` }
		end
		most = math.max(most, latest.total)
		-- A run that could not be built is nothing to compare with.
		base = if latest.ran then latest else base
		-- A fix is for the failures that there were: several bugs are mended one by one. For a session, nothing may be skipped, either.
		local mended = run_comparison.mended(before, latest)
		local done = latest.verdict == "passed" or latest.verdict == "unverified"
		record_verification(self, number, done or #mended > 0, progress_note(before, mended))
		if #mended > 0 and not done then
			ui.say(`• {progress_note(before, mended) or "all that failed before passes, and something else fails"}`)
			attempts = 0
			table.clear(self.failure_counts)
		end
		local stuck = run_comparison.stuck_reason(self, latest, self.doc.executions[#self.doc.executions].code_hash)
		ended = ending_without_fix(latest)
		if ended ~= nil then
			return ended
		elseif latest.verdict == "passed" then
			local patch = git.diff(self.start_commit, commit).patch
			local unmet, unknown = coverage.judge(self.params, first, latest, patch, self.lcov)
			if unmet ~= nil then
				return { status = "escalated", reason = `coverage_threshold_unmet: {unmet}` }
			end
			return {
				status = "passed",
				reason = `passed after {fixes} fix{if fixes == 1 then "" else "es"}` .. (if unknown then `; {unknown}` else ""),
			}
		elseif stuck ~= nil then
			return { status = "escalated", reason = `stuck: {stuck}` }
		end
	end
	return { status = "escalated", reason = `max_attempts_reached: {self.params.max_attempts} fixes did not do it` }
end

--- Runs a session to its end, which is recorded.
function loop.run(self: state.Session): Ending
	local came, ending: any = leftovers.try(function()
		return try_fixes(self)
	end)
	if not came then
		ending = { status = "escalated", reason = `left_behind: {ending}` }
	end
	self.doc.status = ending.status
	hooks.count_patterns(self)
	if ending.status == "passed" then
		hooks.run(self, "on_success")
	end
	self.doc.learnings = self.doc.learnings or {}
	self.doc.learnings.recommendations = { `{ending.status}: {ending.reason}` }
	if ending.status == "escalated" then
		hooks.run(self, "on_escalation")
	end
	memory_files.save(self)
	return ending
end

return loop
