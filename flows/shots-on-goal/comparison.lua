--!strict
--- How near a tree is to its goal, by what validates it: which of two results of the same commands is better. Apart, because
--- the choice of what the next attempt begins with and the end of a session must agree on it.

local results = require("../common/memory/results")

local comparison = {}

--- How one command ended, and what its output says of tests, where that is known.
export type Ran = { exit: number, report: results.Results? }

--- Results by the text of the command.
export type Runs = { [string]: Ran }

--- Returns the names of the tests that failed, and whether the runner names them all.
local function failing(report: results.Results): ({ [string]: boolean }, boolean)
	local names: { [string]: boolean } = {}
	for _, failure in report.failures do
		names[failure.test_name] = true
	end
	return names, #report.failures >= report.failed
end

--- Compares two reports of a command that failed both times. Better is: fewer failures and none that is new, and no test less
--- that passes; and tests that run at all, where none could be run before.
local function of_reports(before: results.Results, after: results.Results): string
	if not before.ran and not after.ran then
		return "same"
	elseif not before.ran then
		return if after.passed > 0 then "better" else "same"
	elseif not after.ran or after.passed < before.passed or after.failed > before.failed then
		return "worse"
	end
	local known, all = failing(before)
	for name in failing(after) do
		if all and not known[name] then
			return "worse"
		end
	end
	return if after.failed < before.failed then "better" else "same"
end

--- Compares how one command ended: `better`, `same` or `worse`.
function comparison.of_command(before: Ran?, after: Ran): string
	if before == nil then
		return "same"
	elseif (before.exit == 0) ~= (after.exit == 0) then
		return if after.exit == 0 then "better" else "worse"
	elseif after.exit == 0 or before.report == nil or after.report == nil then
		return "same"
	end
	return of_reports(before.report :: results.Results, after.report :: results.Results)
end

--- Compares the results of two trees: better is a tree for which one command came out better, and none worse.
function comparison.of(before: Runs, after: Runs): string
	local better = false
	for command, ran in after do
		local how = comparison.of_command(before[command], ran)
		if how == "worse" then
			return "worse"
		end
		better = better or how == "better"
	end
	return if better then "better" else "same"
end

--- Returns the results in a few words, such as `1 of 2 commands passed, 3 of 148 tests failed`, or of a single command
--- `the command failed, 3 of 148 tests failed`.
function comparison.describe(runs: Runs): string
	local commands, passed, tests, failed = 0, 0, 0, 0
	for _, ran in runs do
		commands += 1
		passed += if ran.exit == 0 then 1 else 0
		if ran.report ~= nil then
			tests += ran.report.total
			failed += ran.report.failed
		end
	end
	local how = if commands > 1
		then `{passed} of {commands} commands passed`
		elseif passed == 1 then "the command passed"
		else "the command failed"
	local counted = if tests > 0 then `, {failed} of {tests} tests failed` else ""
	return how .. counted
end

return comparison
