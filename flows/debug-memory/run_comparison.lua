--!strict
--- Compares runs of the tests: finds a regression, and a session that goes round in circles.

local errors = require("../common/memory/errors")
local list = require("../common/list")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local state = require("./state")

local run_comparison = {}

--- A failure that so many fixes have left as it was means that the session is stuck.
run_comparison.STUCK = 3

--- Stands for a goal where no test fails.
local GOAL = "the goal"

--- Returns a test's name without its groups, which only some runners print.
local function short_name(name: string): string
	return string.match(name, "› ([^›]+)$") or string.match(name, " > ([^>]+)$") or name
end

--- Returns a test that failed, and of which the next run says nothing although it names its tests, or nil.
local function gone_failure(before: results.Results, after: results.Results): string?
	if #after.tests == 0 then
		return nil
	end
	local named: { [string]: boolean } = {}
	for _, test in after.tests do
		named[short_name(test.name)] = true
	end
	for _, failure in before.failures do
		if not named[short_name(failure.test_name)] then
			return failure.test_name
		end
	end
	return nil
end

--- Returns what is worse than before, or nil. `most` is the largest number of tests of any run so far.
function run_comparison.regression(before: results.Results, after: results.Results, most: number): string?
	if not before.ran or not after.ran then
		-- Without a build there is nothing to compare.
		return nil
	end
	local passed, failed = {}, {}
	for _, name in before.passes do
		passed[short_name(name)] = true
	end
	for _, failure in before.failures do
		failed[short_name(failure.test_name)] = true
	end
	for _, failure in after.failures do
		local name = short_name(failure.test_name)
		if passed[name] then
			return `{failure.test_name} passed before`
		elseif #before.passes == 0 and not failed[name] and after.failed > before.failed then
			return `{failure.test_name} fails, and more tests than before`
		end
	end
	-- Runs with failures or cut output list fewer tests for other reasons, but not those that failed.
	if #after.failures == 0 and not after.cut and after.total < most then
		return `{most - after.total} tests are gone`
	elseif not after.cut and after.total < before.total then
		local gone = gone_failure(before, after)
		if gone ~= nil then
			return `{gone} failed before, and is gone`
		end
	end
	if after.skipped > before.skipped then
		return `{after.skipped - before.skipped} more tests are skipped`
	end
	return nil
end

--- Returns the failures of a run that the next one does not have any more.
function run_comparison.mended(before: results.Results, after: results.Results): { report.Failure }
	if not after.ran then
		return {}
	end
	local failing: { [string]: boolean } = {}
	for _, failure in after.failures do
		failing[short_name(failure.test_name)] = true
	end
	return list.filter(before.failures, function(failure)
		return not failing[short_name(failure.test_name)]
	end)
end

local function failure_signature(failure: report.Failure): string
	return `{failure.test_name} {failure.error_type} {errors.signature(failure.error_message)}`
end

--- Returns the names of the failures that a fix is for: those that its analysis names, of those that there are; all where it
--- names none of them.
function run_comparison.targets(before: results.Results, related: { string }?): { string }
	local all, named = {}, {}
	for _, failure in before.failures do
		table.insert(all, failure.test_name)
		if related ~= nil and table.find(related, failure.test_name) ~= nil then
			table.insert(named, failure.test_name)
		end
	end
	return if #named > 0 then named else all
end

--- Counts a fix for the failures that it was for, and returns those that have had all of their fixes and still fail. A goal
--- without a failing test counts as one.
function run_comparison.used_up(self: state.Session, latest: results.Results, targets: { string }): { string }
	local counted: { string } = if #targets > 0 then targets else { GOAL }
	local used = {}
	for _, name in counted do
		self.tries[name] = (self.tries[name] or 0) + 1
		local fails = name == GOAL
			or list.some(latest.failures, function(failure)
				return short_name(failure.test_name) == short_name(name)
			end)
		if fails and self.tries[name] >= self.params.max_attempts then
			table.insert(used, name)
		end
	end
	return used
end

--- Returns whether the code of the last execution is what it was at an earlier one, and at which.
function run_comparison.same_code(self: state.Session): number?
	local last = self.doc.executions[#self.doc.executions].code_hash
	for index = 1, #self.doc.executions - 1 do
		if self.doc.executions[index].code_hash == last then
			return index
		end
	end
	return nil
end

--- Counts the failures that a fix was for and has left as they were, and returns those of which that is so for the third time.
function run_comparison.stuck(self: state.Session, latest: results.Results, targets: { string }): { string }
	local stuck = {}
	for _, failure in latest.failures do
		if table.find(targets, failure.test_name) == nil then
			continue
		end
		local key = failure_signature(failure)
		self.failure_counts[key] = (self.failure_counts[key] or 0) + 1
		if self.failure_counts[key] >= run_comparison.STUCK then
			table.insert(stuck, failure.test_name)
		end
	end
	return stuck
end

--- Whether two texts are the same but for numbers, paths and spaces.
function run_comparison.is_same_text(a: string, b: string): boolean
	return errors.signature(a) == errors.signature(b)
end

return run_comparison
