--!strict
--- What one run of the tests says beside another: progress, a regression, or going round in circles.

local errors = require("../common/memory/errors")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local state = require("./state")

local judge = {}

--- How often the same failure is seen before the session is stuck.
local STUCK = 3

--- Returns a test's name without the groups that only some runners print.
local function short(name: string): string
	return string.match(name, "› ([^›]+)$") or name
end

--- Returns what is worse than before, or nil. `most` is how many tests were seen at once so far.
function judge.regression(before: results.Results, after: results.Results, most: number): string?
	if not before.ran or not after.ran then
		-- Without a build there is nothing to compare.
		return nil
	end
	local passed, failed = {}, {}
	for _, name in before.passes do
		passed[short(name)] = true
	end
	for _, failure in before.failures do
		failed[short(failure.test_name)] = true
	end
	for _, failure in after.failures do
		local name = short(failure.test_name)
		if passed[name] then
			return `{failure.test_name} passed before`
		elseif #before.passes == 0 and not failed[name] and after.failed > before.failed then
			return `{failure.test_name} fails, and more tests than before`
		end
	end
	-- A runner that stops at the first failure tells fewer of them, and so does an output without its middle.
	if #after.failures == 0 and not after.cut and after.total < most then
		return `{most - after.total} tests are gone`
	elseif after.skipped > before.skipped then
		return `{after.skipped - before.skipped} more tests are skipped`
	end
	return nil
end

local function signature(failure: report.Failure): string
	return `{failure.test_name} {failure.error_type} {errors.signature(failure.error_message)}`
end

--- Counts the failures of a run; returns why the session is stuck, if it is.
function judge.stuck(self: state.Session, latest: results.Results, code_hash: string): string?
	for index = 1, #self.doc.executions - 1 do
		if self.doc.executions[index].code_hash == code_hash then
			return `the code is what it was at attempt {index}: it was undone and done again`
		end
	end
	local reason: string? = nil
	for _, failure in latest.failures do
		local key = signature(failure)
		self.counts[key] = (self.counts[key] or 0) + 1
		if self.counts[key] == STUCK then
			reason = reason or `{failure.test_name} failed in the same way {STUCK} times`
		end
	end
	return reason
end

--- Tells whether a text says the same as another, apart from numbers and spaces.
function judge.same(a: string, b: string): boolean
	return errors.signature(a) == errors.signature(b)
end

return judge
