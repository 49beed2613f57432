--!strict
--- What each parser returns, and what all parsers need to build it.

local errors = require("../errors")
local text = require("@nietz/text")

local report = {}

export type Location = {
	file: string,
	line: number?,
	["function"]: string?,
	--- Whether the runner tells only the end of the path; and the package that it belongs to, as far as that is told.
	partial: boolean?,
	package: string?,
}

export type Failure = {
	test_name: string,
	test_file: string?,
	test_line: number?,
	error_type: string,
	error_message: string,
	stack_trace: string?,
	expected: string?,
	actual: string?,
	source_location: Location?,
}

--- A failure as a parser reads it, before it has a kind of error and a bounded length.
export type RawFailure = {
	test_name: string,
	test_file: string?,
	test_line: number?,
	--- The kind of error, or else what the runner calls it.
	error_type: string?,
	error_name: string?,
	error_message: string?,
	stack_trace: string?,
	expected: string?,
	actual: string?,
	--- Where the stack went, innermost first; or only the one place that is told.
	frames: { Location }?,
	source_location: Location?,
	--- `error` where the runner tells it apart from a test that failed.
	outcome: string?,
	duration_ms: number?,
}

--- One test that the runner names.
export type Test = {
	name: string,
	--- `passed`, `failed`, `error` or `skipped`.
	outcome: string,
	file: string?,
	line: number?,
	duration_ms: number?,
	--- Of one that failed: its entry in `failures`, and where the stack went, innermost first.
	failure: Failure?,
	frames: { Location }?,
}

export type Report = {
	--- Which runner wrote it, and the runtime where that is sure.
	framework: string,
	framework_version: string?,
	runtime: string?,
	runtime_version: string?,
	total: number,
	passed: number,
	failed: number,
	--- Of those that failed: not by an assertion.
	errors: number,
	skipped: number,
	duration_ms: number?,
	coverage_percent: number?,
	failures: { Failure },
	--- Whether nothing could be run, because it could not be built.
	unbuilt: boolean?,
	--- The names of tests that passed, as far as the runner tells.
	passes: { string },
	--- All tests that the runner names, in the order of its output.
	tests: { Test },
	--- The folder that the runner's paths are relative to, where it names one.
	root: string?,
}

--- What else a runner tells of a test that did not fail.
export type Details = { file: string?, line: number?, duration_ms: number? }

--- The longest message, trace and value that are kept.
local MESSAGE, TRACE, VALUE = 2000, 6000, 500

function report.new(framework: string, runtime: string?): Report
	return {
		framework = framework,
		runtime = runtime,
		total = 0,
		passed = 0,
		failed = 0,
		errors = 0,
		skipped = 0,
		failures = {},
		passes = {},
		tests = {},
	}
end

local function add_test(self: Report, name: string, outcome: string, details: Details?)
	local told: Details = details or {}
	table.insert(self.tests, { name = name, outcome = outcome, file = told.file, line = told.line, duration_ms = told.duration_ms } :: Test)
end

--- Adds a test that passed.
function report.add_pass(self: Report, name: string, details: Details?)
	table.insert(self.passes, name)
	add_test(self, name, "passed", details)
end

--- Adds a test that was not executed, or whose failure is expected.
function report.add_skip(self: Report, name: string, details: Details?)
	add_test(self, name, "skipped", details)
end

local function shorten(value: string?, most: number): string?
	if value == nil then
		return nil
	end
	local trimmed = text.trim(value :: string)
	return if trimmed == "" then nil else text.truncate(trimmed, most)
end

--- Adds a failure; the kind of its error comes from its name and message where it is not given.
function report.add_failure(self: Report, failure: RawFailure)
	local message = shorten(failure.error_message, MESSAGE) or "the runner gives no message"
	local added: Failure = {
		test_name = shorten(failure.test_name, VALUE) or "a test without a name",
		test_file = failure.test_file,
		test_line = failure.test_line,
		error_type = failure.error_type or errors.kind(failure.error_name, message),
		error_message = message,
		stack_trace = shorten(failure.stack_trace, TRACE),
		expected = shorten(failure.expected, VALUE),
		actual = shorten(failure.actual, VALUE),
		source_location = failure.source_location,
	}
	table.insert(self.failures, added)
	add_test(self, added.test_name, failure.outcome or "failed", { duration_ms = failure.duration_ms })
	local test = self.tests[#self.tests]
	test.failure, test.frames = added, failure.frames
end

--- Whether a path is that of a test, by the usual names.
function report.is_test(path: string): boolean
	local base = string.match(path, "([^/]+)$") or path
	for _, pattern in { "^test[_%.]", "^tests?%.", "_tests?%.", "%.test%.", "%.spec%.", "_spec%.", "Tests?%.%a+$", "Spec%.%a+$" } do
		if string.find(base, pattern) ~= nil then
			return true
		end
	end
	return string.find(path, "^tests?/") ~= nil
		or string.find(path, "/tests?/") ~= nil
		or string.find(path, "^spec/") ~= nil
		or string.find(path, "/spec/") ~= nil
		or string.find(path, "__tests__", 1, true) ~= nil
end

--- How runners write an expected and an actual value: a pattern, and whether the expected one comes first.
local SIDES = {
	{ pattern = "\n%s*#?%s*[Ee]xpected[^:\n]*:[ \t]*([^\n]-)[ \t]*\n%s*[RrAa]%a+[^:\n]*:[ \t]*([^\n]+)", expected_first = true },
	{ pattern = "strictly equal:%s*([^\n]-) !== ([^\n]+)", expected_first = false },
	{ pattern = "\n%s*left: ([^\n]-)%s*\n%s*right: ([^\n]+)", expected_first = false },
	{ pattern = "expected: ([^\n]-)%s*\n%s*got: ([^\n]+)", expected_first = true },
	{ pattern = "got: ([^\n]-)%s*\n%s*#?%s*expected: ([^\n]+)", expected_first = false },
	{ pattern = "Failed asserting that ([^\n]-) is identical to ([^\n]-)%.\n", expected_first = false },
	{ pattern = "Failed asserting that ([^\n]-) matches expected ([^\n]-)%.\n", expected_first = false },
	{ pattern = "assert (.-) == ([^\n]+)", expected_first = false },
	{ pattern = "AssertionError: %a+ differ: (.-) != ([^\n]+)", expected_first = false },
	{ pattern = "AssertionError: (.-) != ([^\n]+)", expected_first = false },
	{ pattern = "[Ee]xpected:? ?<(.-)> but was:? ?<(.-)>", expected_first = true },
}

--- Returns the expected and the actual value, as far as a message has them.
function report.expected_and_actual(message: string): (string?, string?)
	for _, form in SIDES do
		local first, second = string.match(`\n{message}\n`, form.pattern)
		if first ~= nil then
			if form.expected_first then
				return first, second
			end
			return second, first
		end
	end
	return nil, nil
end

--- Returns the lines that a difference takes away (`-`) and those that it adds (`+`), without its headings.
function report.sides_of_diff(diff: string): (string?, string?)
	local less, more = {}, {}
	for _, row in text.lines(diff) do
		local sign, rest = string.match(row, "^%s*([%+%-])(.*)$")
		if
			sign ~= nil
			and rest ~= nil
			and string.find(row, "Expected", 1, true) == nil
			and string.find(row, "Received", 1, true) == nil
			and string.find(row, "^[%+%-]+ Actual") == nil
		then
			table.insert(if sign == "-" then less else more, text.trim(rest))
		end
	end
	return if #less > 0 then table.concat(less, "\n") else nil, if #more > 0 then table.concat(more, "\n") else nil
end

--- Returns the lines from one on, up to the first for which `is_end` is true, joined; and the number of that line.
function report.read_block(lines: { string }, from: number, is_end: (line: string, at: number) -> boolean): (string, number)
	local at = from
	while at <= #lines and not is_end(lines[at], at) do
		at += 1
	end
	return table.concat(lines, "\n", from, math.min(at - 1, #lines)), at
end

--- Returns the number in front of a word, as in `3 passed, 1 failed`; 0 where the word is not there.
function report.number_before(line: string, word: string): number
	return tonumber((string.match(line, "(%d+) " .. word))) or 0
end

--- Returns a number of seconds, as a runner writes it, in milliseconds; nil where it is no number.
function report.to_milliseconds(value: string?): number?
	local number = tonumber(value)
	return if number then math.round(number * 1000) else nil
end

return report
