--!strict
--- Reads what a test run wrote: finds the parser for its output, and adds what no parser may overlook, such as a limit that
--- ended the run.

local described = require("./parsers/described")
local dotnet = require("./parsers/dotnet")
local errors = require("./errors")
local git = require("@nietz/git")
local go = require("./parsers/go")
local jest = require("./parsers/jest")
local junit = require("./parsers/junit")
local jvm = require("./parsers/jvm")
local mocha = require("./parsers/mocha")
local node = require("./parsers/node")
local phpunit = require("./parsers/phpunit")
local places = require("./places")
local pytest = require("./parsers/pytest")
local report = require("./parsers/report")
local rspec = require("./parsers/rspec")
local rust = require("./parsers/rust")
local tap = require("./parsers/tap")
local text = require("@nietz/text")
local unittest = require("./parsers/unittest")
local vitest = require("./parsers/vitest")

local results = {}

export type Results = report.Report & {
	--- `passed`; `failed`; `unverified`, when nothing failed and tests were skipped; `empty`, when nothing was executed;
	--- `unknown`, when no parser knows the output.
	verdict: string,
	--- Whether the tests could be built and begun.
	ran: boolean,
	--- Whether the middle of the output was cut out, and no XML replaces it.
	cut: boolean,
}

--- In the order in which they are tried: the first that knows the output is taken. Runners that are described come first:
--- who describes one has output that nothing else reads right.
local PARSERS = described.parsers()
for _, parser in
	{
		rust.nextest,
		rust.cargo,
		vitest,
		jest,
		pytest,
		unittest,
		rspec,
		phpunit,
		jvm.maven,
		jvm.gradle,
		dotnet,
		node.spec,
		mocha,
		tap,
		go,
	} :: { (string) -> report.Report? }
do
	table.insert(PARSERS, parser)
end

--- How much of an unknown output is kept as the message of its failure.
local TAIL = 1500

--- The name of the failure where the run failed and no test did.
local TEST = "the test command"

--- Returns an output without colours and carriage returns.
local function strip_terminal_codes(output: string): string
	return (string.gsub(string.gsub(output, "\27%[[%d;]*m", ""), "\r\n", "\n"))
end

--- Returns a path that a runner tells, as one of the worktree: its own folder is put in front where it names one.
local function path_of(found: report.Report, path: string?, top: string): string?
	if path == nil then
		return nil
	end
	local whole = path
	if found.root ~= nil and string.sub(path, 1, 1) ~= "/" and places.in_worktree(`{found.root}/x`, top) ~= nil then
		whole = `{found.root}/{path}`
	end
	return places.in_worktree(whole, top)
end

--- Returns where a failure left the project: the innermost of its frames that is in it.
local function source_of(frames: { report.Location }, top: string, find: places.Find?): report.Location?
	for _, frame in frames do
		local own = if frame.line ~= nil then places.own(frame, top, find) else nil
		if own ~= nil then
			return own
		end
	end
	return nil
end

--- Returns `find`, asked for each glob once: many failures go through the same files.
local function find_once(find: places.Find): places.Find
	local known: { [string]: { string } } = {}
	return function(glob: string): { string }
		local found = known[glob] or find(glob)
		known[glob] = found
		return found
	end
end

--- Makes the paths of a report those of the worktree, and finds the source of each failure.
local function place_failures(found: report.Report, top: string, find: places.Find?)
	-- `gsub` takes a pattern: what is special in the path is escaped.
	local folder = string.gsub(top, "%p", "%%%0") .. "/"
	local failed: { [string]: boolean } = {}
	for _, test in found.tests do
		test.name = string.gsub(test.name, folder, "")
		local failure = test.failure
		if failure == nil then
			test.file = path_of(found, test.file, top)
			continue
		end
		local frames: { report.Location } = test.frames or {}
		for _, frame in frames do
			-- A runner that was begun in a folder of its own tells all places from there.
			if frame.file == failure.test_file and found.root ~= nil then
				for _, other in frames do
					local whole = if string.sub(other.file, 1, 1) == "/" then nil else path_of(found, other.file, top)
					other.file = whole or other.file
				end
				break
			end
		end
		failure.test_name = test.name
		failed[test.name] = true
		failure.source_location = source_of(frames, top, find)
		local told = failure.test_file
		failure.test_file = path_of(found, told, top)
		for _, frame in frames do
			-- The end of a path is a path only where the project has one such file.
			if frame.partial and frame.file == told then
				local own = places.own(frame, top, find)
				failure.test_file = if own then own.file else failure.test_file
			end
			frame.file = places.in_worktree(frame.file, top) or frame.file
		end
		failure.stack_trace = if failure.stack_trace then (string.gsub(failure.stack_trace, folder, "")) else nil
		failure.error_message = string.gsub(failure.error_message, folder, "")
		test.file, test.line = failure.test_file, failure.test_line
	end
	-- A test that passed and whose teardown failed did not pass.
	local passes: { string } = {}
	for _, name in found.passes do
		if not failed[name] then
			table.insert(passes, name)
		end
	end
	found.passes = passes
end

--- Returns the report of the first parser that knows the output, or nil.
function results.parse(output: string): report.Report?
	local clean = strip_terminal_codes(output)
	for _, parser in PARSERS do
		local found = parser(clean)
		if found ~= nil then
			return found
		end
	end
	return nil
end

--- Returns the results of a run in the worktree at `top`; `xml` is its JUnit file, where there is one. `find` finds files of
--- the project by a glob: some runners tell only the end of a path, and without it such a place is not known.
function results.read(ran: git.Ran, top: string, xml: string?, find: places.Find?): Results
	local clean = strip_terminal_codes(ran.output)
	local self = (if xml then junit(xml) else nil) or results.parse(clean)
	local known = self ~= nil
	local found = self or report.new("unknown")
	local executed = found.total - found.skipped
	local run_failure: report.RawFailure? = nil
	if ran.over ~= "exit" then
		local why = if ran.over == "timeout" or ran.over == "idle" then "TimeoutError" else "RuntimeError"
		run_failure = { test_name = TEST, error_type = why, error_message = `the run was ended by its limit: {ran.over}` }
	elseif ran.exit ~= 0 and #found.failures == 0 then
		local tail = string.sub(clean, -TAIL)
		run_failure = { test_name = TEST, error_type = errors.kind(nil, tail), error_message = `exit code {ran.exit}: {text.trim(tail)}` }
	end
	if run_failure ~= nil then
		run_failure.stack_trace = string.sub(clean, -TAIL)
		run_failure.outcome = "error"
		report.add_failure(found, run_failure)
		-- Where the runner counts failures that it does not name, this one stands for them.
		if found.failed == 0 or ran.over ~= "exit" then
			found.total += 1
			found.failed += 1
			found.errors += 1
		end
	end
	place_failures(found, top, if find then find_once(find) else nil)
	local out = found :: Results
	out.cut = ran.file ~= nil and xml == nil
	out.ran = executed > 0 and not found.unbuilt
	if found.failed > 0 or #found.failures > 0 then
		out.verdict = "failed"
	elseif not known then
		out.verdict = "unknown"
	elseif executed == 0 then
		out.verdict = "empty"
	elseif found.skipped > 0 then
		out.verdict = "unverified"
	else
		out.verdict = "passed"
	end
	return out
end

return results
