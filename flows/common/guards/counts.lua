--!strict
--- Compares what test runs told of their tests: every test that ran before has to run afterwards.

local list = require("../list")
local results = require("../memory/results")
local rules = require("./rules")
local text = require("@nietz/text")

local counts = {}

--- How a command ended after the work, and what its output says of tests.
--- `ended_at` is when, where that is recorded.
export type Run = { step: number, command: string, exit: number, output: string, report: results.Results?, ended_at: string? }

--- How many names are told.
local MOST_NAMES = 5

--- A name that ends like a file is that of a file that could not be loaded.
local ENDINGS: { [string]: boolean } =
	{ js = true, mjs = true, cjs = true, jsx = true, ts = true, tsx = true, py = true, rb = true, rs = true, php = true }

--- What stands for tests in a report and is none: a build, a file that cannot be loaded.
local function is_test(name: string): boolean
	return name ~= "build"
		and name ~= "the test command"
		and string.find(name, "_FailedTest", 1, true) == nil
		and string.find(name, "^setUp") == nil
		and string.find(name, "^tearDown") == nil
		and string.find(name, "^unittests? ") == nil
		and not ENDINGS[string.match(name, "%.(%a+)$") or ""]
		and string.find(name, "^/") == nil
end

--- Returns a test's name without the groups and the places around it.
local function short_name(name: string): string
	local plain = string.match(name, "^(.-) %(.*%)$") or name
	return string.match(plain, "› ([^›]+)$") or string.match(plain, " > ([^>]+)$") or string.match(plain, "::([^:]+)$") or plain
end

--- Returns how often each name was executed and skipped; how many tests were executed; and whether all are named.
local function read(report: results.Results): ({ [string]: number }, { [string]: number }, number, boolean)
	local ran: { [string]: number }, skipped: { [string]: number } = {}, {}
	local executed, no_tests = report.total - report.skipped, 0
	for _, test in report.tests do
		local name = short_name(test.name)
		if test.outcome == "skipped" then
			skipped[name] = (skipped[name] or 0) + 1
		elseif is_test(test.name) then
			ran[name] = (ran[name] or 0) + 1
		else
			no_tests += 1
		end
	end
	return ran, skipped, math.max(0, executed - no_tests), #report.tests >= report.total and report.total > 0
end

local function names_text(names: { string }): string
	table.sort(names)
	local shown = {}
	for index = 1, math.min(MOST_NAMES, #names) do
		shown[index] = `\`{names[index]}\``
	end
	local more = #names - #shown
	return table.concat(shown, ", ") .. (if more > 0 then ` and {more} more` else "")
end

--- Returns how often tests of a name were executed, as far as the runner names them.
function counts.executions(report: results.Results, name: string): number
	local ran = read(report)
	return ran[name] or 0
end

--- Whether a runner tells where tests of this name stand, and one of the same place ran both times.
function counts.tells_places(before: results.Results, after: results.Results, name: string): boolean
	local known: { [string]: boolean } = {}
	for _, test in before.tests do
		local has_place = string.find(test.name, "%(.+%..+%)$") ~= nil or string.find(test.name, "%.%w+::") ~= nil
		if has_place and short_name(test.name) == name then
			known[test.name] = true
		end
	end
	for _, test in after.tests do
		if known[test.name] then
			return true
		end
	end
	return false
end

--- Returns the commands that failed before and now say only that there was nothing to do, each as a part of a sentence.
function counts.idle(runs: { Run }, failed_before: (command: string) -> boolean): { string }
	local said: { string } = {}
	for _, run in runs do
		local idle = run.exit == 0 and failed_before(run.command) and text.trim(run.output) ~= ""
		for _, line in text.lines(text.trim(run.output)) do
			idle = idle and (text.trim(line) == "" or text.search(line, rules.all.idle) ~= nil)
		end
		if idle then
			table.insert(said, `\`{run.command}\` found nothing to do: {text.trim(run.output)}`)
		end
	end
	return said
end

--- Whether the tests of a report can be counted.
function counts.counted(report: results.Results?): boolean
	return report ~= nil and report.verdict ~= "unknown" and report.framework ~= "unknown"
end

--- Returns what is missing of the tests that one command ran before.
local function of_run(before: results.Results, after: results.Results, may_change: boolean): { string }
	local said: { string } = {}
	local old, _, executed_before = read(before)
	local new, skipped, executed, all_named = read(after)
	local gone: { string }, left_out: { string } = {}, {}
	if all_named then
		for name, count in old do
			if (new[name] or 0) < count then
				table.insert(if (skipped[name] or 0) > 0 then left_out else gone, name)
			end
		end
	end
	local added = 0
	for name, count in new do
		added += math.max(0, count - (old[name] or 0))
	end
	-- Where tests may change, one that is gone is answered by an added one: it was renamed.
	if #gone > 0 and not (may_change and added >= #gone) then
		table.insert(said, `{names_text(gone)} ran before, and {if #gone == 1 then "is" else "are"} gone`)
	end
	if #left_out > 0 then
		table.insert(said, `{names_text(left_out)} ran before, and {if #left_out == 1 then "is" else "are"} skipped`)
	end
	if #said == 0 and executed < executed_before then
		table.insert(said, `{executed_before} tests ran before, and {executed} run now`)
	elseif #said == 0 and not all_named and after.skipped > before.skipped then
		table.insert(said, `{after.skipped - before.skipped} more tests are skipped than before`)
	end
	return said
end

--- Returns what of the tests that ran before does not hold any more, each as a part of a sentence. Commands that failed show it
--- by themselves.
function counts.compare(before: { [string]: results.Results }, runs: { Run }, may_change: boolean): { string }
	local said: { string } = {}
	for _, run in runs do
		if run.exit ~= 0 then
			continue
		end
		local old = if counts.counted(before[run.command]) then before[run.command] else nil
		local report = if counts.counted(run.report) then run.report else nil
		if report == nil then
			-- A build that failed is read like a run of tests; one that passes has none.
			if old ~= nil and (old.ran or string.find(run.command, "test", 1, true) ~= nil) then
				local _, _, executed = read(old)
				table.insert(said, `\`{run.command}\` told of {executed} tests before, and of none now`)
			end
		elseif report.failed > 0 then
			local names = list.map(report.failures, function(failure): string
				return failure.test_name
			end)
			table.insert(said, `\`{run.command}\` exited with 0, and {names_text(names)} failed`)
		elseif report.total - report.skipped == 0 and (old == nil or old.verdict ~= "empty") then
			table.insert(said, `\`{run.command}\` executed no test`)
		elseif old ~= nil then
			for _, part in of_run(old, report, may_change) do
				table.insert(said, part)
			end
		end
	end
	return said
end

--- Returns the commands that passed and whose tests cannot be counted.
function counts.uncounted(runs: { Run }): { string }
	local commands: { string } = {}
	for _, run in runs do
		if run.exit == 0 and not counts.counted(run.report) then
			table.insert(commands, `\`{run.command}\``)
		end
	end
	return commands
end

return counts
