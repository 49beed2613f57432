--!strict
--- The loop: execute, parse, analyse, fix, verify; until the tests pass, or a person is needed.

local coverage = require("./coverage")
local escalation = require("./escalation")
local executions = require("./executions")
local git = require("@nietz/git")
local hooks = require("./hooks")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local memory_files = require("./memory_files")
local model_calls = require("./model_calls")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local run_comparison = require("./run_comparison")
local set_aside = require("./set_aside")
local state = require("./state")
local ui = require("@nietz/ui")

local loop = {}

--- How far a session is.
type Progress = {
	--- The first results, the last ones, and the last ones of tests that could be built.
	first: results.Results,
	latest: results.Results,
	base: results.Results,
	--- The largest number of tests of any run.
	most: number,
	fixes: number,
	--- The failures that the last fix was for.
	targets: { string },
	--- The commit before the last fix and git's digest of its files.
	before: { commit: string, tree_id: string },
}

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
local function ending_without_fix(latest: results.Results): state.Ending?
	if latest.verdict == "unverified" then
		return { status = "failed", trigger = "unverified", detail = `{latest.skipped} tests were skipped, so it does not count as passed` }
	elseif latest.verdict == "empty" then
		return { status = "failed", trigger = "nothing_executed", detail = "the command ran no test" }
	elseif latest.verdict == "unknown" then
		return state.escalated("unknown_error_type", "no known test runner wrote this; --junit FILE reads its XML")
	end
	return nil
end

--- Returns what is critical and a matter of security in an analysis, or nil.
local function security_issue(value: model_calls.Analysis): string?
	if value.security == "critical" then
		return value.root_cause
	end
	for _, issue in value.issues or {} :: { model_calls.Seen } do
		if issue.security and issue.severity == "critical" then
			return `{issue.issue} ({issue.location})`
		end
	end
	return nil
end

--- Returns the ending where fixes do not lead on, or nil: too many for one failure, or the same failure again and again.
local function dead_end(self: state.Session, p: Progress): state.Ending?
	local used = run_comparison.used_up(self, p.latest, p.targets)
	local stuck = run_comparison.stuck(self, p.latest, p.targets)
	if #used == 0 and #stuck == 0 then
		return nil
	elseif self.over_limit ~= nil then
		return state.escalated("timeout_exceeded", `the tests were ended by their limit: {self.over_limit} ({self.params.test_seconds} s)`)
	elseif self.late then
		return state.escalated("timeout_exceeded", "the last fix was ended by its limit: --attempt-seconds, --idle")
	elseif #used > 0 then
		local count = self.params.max_attempts
		return state.escalated("max_attempts_reached", `{count} fix{if count == 1 then "" else "es"} for {used[1]} did not do it`)
	end
	return state.escalated("stuck", `{stuck[1]} failed in the same way {run_comparison.STUCK} times`)
end

--- Returns the ending where the tests pass with a fix.
local function passed(self: state.Session, p: Progress, commit: string): state.Ending
	local patch = git.diff(self.start_commit, commit).patch
	local unmet, unknown = coverage.judge(self.params, p.first, p.latest, patch, self.lcov)
	if unmet ~= nil then
		return state.escalated("coverage_threshold_unmet", unmet)
	end
	local fixes = `passed after {p.fixes} fix{if p.fixes == 1 then "" else "es"}`
	return { status = "passed", detail = fixes .. (if unknown then `; {unknown}` else "") }
end

--- Judges a fix by a new run of the tests. Returns how the session ends with it, or nil where it goes on.
local function verify(self: state.Session, p: Progress, number: number, commit: string, tree_id: string): state.Ending?
	local before = p.base
	p.latest = executions.run(self, commit, tree_id)
	local latest = p.latest
	local regressed = run_comparison.regression(before, latest, p.most)
	if regressed ~= nil then
		-- What makes something worse, or takes tests away, mended nothing.
		executions.record_verification(self, number, false, `regression: {regressed}`)
		return state.escalated("regression_detected", regressed)
	end
	p.most = math.max(p.most, latest.total)
	-- A run that could not be built is nothing to compare with.
	p.base = if latest.ran then latest else p.base
	-- A fix is for the failures that there were: several bugs are mended one by one. For a session, nothing may be skipped, either.
	local mended = run_comparison.mended(before, latest)
	local done = latest.verdict == "passed" or latest.verdict == "unverified"
	local held = done or #mended > 0
	executions.record_verification(self, number, held, progress_note(before, mended))
	if held then
		self.kept_commit = commit
	end
	local dead = nil
	if #mended > 0 and not done then
		ui.say(`• {progress_note(before, mended) or "all that failed before passes, and something else fails"}`)
		table.clear(self.tries)
		table.clear(self.failure_counts)
	else
		dead = dead_end(self, p)
	end
	local ended = ending_without_fix(latest)
	if ended ~= nil then
		return ended
	elseif latest.verdict == "passed" then
		return passed(self, p, commit)
	end
	local undone = run_comparison.same_code(self)
	if undone ~= nil then
		return state.escalated("stuck", `the code is what it was at attempt {undone}: it was undone and done again`)
	end
	return dead
end

--- One analysis and one fix. Returns how the session ends with it, or nil where it goes on.
local function fix_once(self: state.Session, p: Progress): state.Ending?
	p.fixes += 1
	hooks.run(self, "on_failure")
	local value, why, how = model_calls.analyse(self, p.latest)
	if value == nil then
		return state.escalated(if how == "timeout" then "timeout_exceeded" else "no_analysis", why)
	end
	executions.keep_analysis(self, p.latest, value, hooks.similar_issues(self))
	p.targets = run_comparison.targets(p.latest, value.related_failures)
	local dangerous = security_issue(value)
	local may_go_on = self.senior or self.params.on_escalation == "flag_and_continue"
	if dangerous ~= nil and not may_go_on then
		return state.escalated("security_issue_found", dangerous)
	elseif dangerous ~= nil then
		self.concerns = if self.senior then self.concerns else { dangerous }
	end
	if not self.params.fix then
		return { status = "failed", trigger = nil, detail = "analysed alone, as --no-fix asks" }
	end
	local number = #self.doc.executions
	p.before = { commit = self.commits[number], tree_id = self.trees[number] }
	local commit, tree_id = executions.make_fix(self, p.latest, value)
	if commit == p.before.commit then
		-- A strategy that nobody carried out has not failed: it stays pending, and may be taken again.
		ui.say("✗ the model changed nothing")
		return dead_end(self, p)
	end
	return verify(self, p, number, commit, tree_id)
end

--- Takes a fix back that has made something worse, and runs the tests on what was there before.
local function take_back(self: state.Session, p: Progress)
	self.tree:restore({ from = p.before.commit, globs = { "**" } })
	local made = self.tree:commit(`Take back what attempt {#self.doc.executions - 1} made worse`)
	p.latest = executions.run(self, made.commit, made.tree)
	p.base = p.latest
end

--- Does what `--on-escalation` says where a session cannot go on by itself. Returns how it ends; nil where it goes on.
local function act(self: state.Session, p: Progress, ending: state.Ending): state.Ending?
	local regressed = ending.trigger == "regression_detected"
	if escalation.is_for_a_senior(self, ending) then
		ui.say(`• {state.reason(ending)}. {self.params.senior_model} has one round.`)
		self.senior = true
		self.model = self.params.senior_model
		state.own(self).senior = { model = self.model, from_attempt = #self.doc.executions }
		table.clear(self.tries)
		table.clear(self.failure_counts)
		if regressed then
			take_back(self, p)
		end
		local ended = fix_once(self, p)
		return ended or state.escalated("max_attempts_reached", `the fix of {self.model} did not do it, either`)
	elseif self.params.on_escalation ~= "flag_and_continue" or #p.targets == 0 then
		return ending
	end
	local flagged = table.find({ "max_attempts_reached", "stuck", "timeout_exceeded", "regression_detected" }, ending.trigger or "")
	local others = #p.latest.failures > #p.targets or regressed and #p.base.failures > #p.targets
	if flagged == nil or not others then
		return ending
	end
	ui.say(`• {state.reason(ending)}. It is left to a person, and the session goes on with the others.`)
	set_aside.flag(self, p.targets, state.reason(ending))
	if regressed then
		take_back(self, p)
	end
	set_aside.apply(self, p.latest)
	set_aside.apply(self, p.base)
	if p.latest.verdict == "passed" then
		return { status = "passed", detail = "the others pass" }
	end
	return ending_without_fix(p.latest)
end

--- Returns the ending of a session that has left failures to a person.
local function with_flagged(self: state.Session, ending: state.Ending): state.Ending
	local names = set_aside.flagged(self)
	for _, concern in self.concerns do
		table.insert(names, concern)
	end
	if #names == 0 or ending.status == "escalated" then
		return ending
	end
	return state.escalated("flagged", `{table.concat(names, ", ")}: left to a person; for the rest: {state.reason(ending)}`)
end

local function try_fixes(self: state.Session): state.Ending
	local started = self.tree:commit("the start")
	local latest = executions.run(self, self.start_commit, started.tree)
	if self.cannot_run ~= nil then
		return state.escalated("cannot_run", `the tests cannot run here: {self.cannot_run}`)
	end
	local ended = ending_without_fix(latest)
	if ended ~= nil then
		return ended
	end
	local left = if #self.set_aside > 0 then "; what is known to fail is left as it is" else ""
	if latest.verdict == "passed" and self.params.goal == nil then
		return { status = "passed", detail = "the tests pass as they are" .. left }
	end
	local p: Progress = {
		first = latest,
		latest = latest,
		base = latest,
		most = latest.total,
		fixes = 0,
		targets = {},
		before = { commit = self.start_commit, tree_id = started.tree },
	}
	while ended == nil do
		ended = fix_once(self, p)
		if ended ~= nil and ended.status == "escalated" then
			ended = act(self, p, ended)
		end
	end
	return with_flagged(self, ended :: state.Ending)
end

--- Runs a session to its end, which is recorded.
function loop.run(self: state.Session): state.Ending
	local came, ending: any = leftovers.try(function()
		return try_fixes(self)
	end)
	if not came then
		ending = state.escalated("left_behind", ending)
	end
	self.doc.status = ending.status
	state.own(self).ended = { trigger = ending.trigger, reason = state.reason(ending) }
	if ending.status == "passed" then
		hooks.run(self, "on_success")
	else
		hooks.learn(self)
	end
	if ending.status == "escalated" then
		hooks.run(self, "on_escalation", ending)
	end
	memory_files.save(self)
	return ending
end

return loop
