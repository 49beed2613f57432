--!strict
--- Reads what a test run wrote: finds the parser for its output, and adds what no parser may overlook, such as a limit that
--- ended the run.

local described = require("./parsers/described")
local errors = require("./errors")
local git = require("@nietz/git")
local go = require("./parsers/go")
local jest = require("./parsers/jest")
local junit = require("./parsers/junit")
local python = require("./parsers/python")
local report = require("./parsers/report")
local rust = require("./parsers/rust")
local tap = require("./parsers/tap")
local text = require("@nietz/text")

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
for _, parser in { rust.nextest, rust.cargo, jest, python.pytest, python.unittest, tap, go } :: { (string) -> report.Report? } do
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

--- Returns a path relative to the worktree, or nil where it is outside of it.
local function path_in_worktree(path: string?, top: string): string?
	if path == nil then
		return nil
	end
	local short = string.gsub(path :: string, "^file://", "")
	if string.sub(short, 1, #top + 1) == top .. "/" then
		return string.sub(short, #top + 2)
	end
	return if string.sub(short, 1, 1) == "/" then nil else (string.gsub(short, "^%./", ""))
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

--- Returns the results of a run in the worktree at `top`; `xml` is its JUnit file, where there is one.
function results.read(ran: git.Ran, top: string, xml: string?): Results
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
		report.add_failure(found, run_failure)
		found.total += 1
		found.failed += 1
		found.errors += 1
	end
	-- `gsub` takes a pattern: what is special in the path is escaped.
	local folder = string.gsub(top, "%p", "%%%0") .. "/"
	for _, failure in found.failures do
		failure.test_file = path_in_worktree(failure.test_file, top)
		local place = failure.source_location
		local file = if place then path_in_worktree(place.file, top) else nil
		if place ~= nil and file ~= nil then
			place.file = file :: string
		else
			failure.source_location = nil
		end
		failure.stack_trace = if failure.stack_trace then (string.gsub(failure.stack_trace, folder, "")) else nil
		failure.error_message = string.gsub(failure.error_message, folder, "")
	end
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
