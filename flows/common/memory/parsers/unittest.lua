--!strict
--- Reads the output of Python's own unittest, with or without -v.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Reads the block of one failure: its traceback, and the message behind it.
local function describe(name: string, block: string): report.RawFailure
	local stack = frames.python(block)
	-- A chain of exceptions ends with the one that the test saw; its message begins behind the last indented line.
	local last = string.match(block, ".*\nTraceback %(most recent call last%):\n(.*)$")
		or string.match(block, "^Traceback %(most recent call last%):\n(.*)$")
		or block
	local message: { string } = {}
	for _, row in text.lines(last) do
		if string.find(row, "^%s") and #message == 0 then
			continue
		end
		if string.find(row, "^%S") or #message > 0 then
			if string.find(row, "^Stdout:$") or string.find(row, "^Stderr:$") then
				break
			end
			table.insert(message, row)
		end
	end
	local said = text.trim(table.concat(message, "\n"))
	local expected, actual = report.expected_and_actual(said)
	local test: report.Location? = nil
	for _, frame in stack do
		test = if report.is_test(frame.file) then frame else test
	end
	return {
		test_name = name,
		test_file = if test then test.file else nil,
		test_line = if test then test.line else nil,
		error_name = string.match(said, "^([%a_][%w_%.]*)"),
		error_message = said,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

--- Adds the tests that -v names as they end.
local function add_named(self: report.Report, lines: { string }): boolean
	local verbose = false
	local before = ""
	for _, line in lines do
		if string.find(line, "^=====") then
			break
		end
		local said, outcome = string.match(line, "^(.-) %.%.%. (.*)$")
		if said ~= nil and outcome ~= nil then
			-- A test with a description has it in a line of its own, behind the name.
			local name = if string.find(said, " %b()$") then said else before
			verbose = true
			if outcome == "ok" then
				report.add_pass(self, name)
			elseif string.find(outcome, "^skipped") or outcome == "expected failure" then
				report.add_skip(self, name)
			end
		end
		before = line
	end
	return verbose
end

return function(output: string): report.Report?
	local count, seconds = string.match("\n" .. output, "\nRan (%d+) tests? in ([%d%.]+)s")
	if count == nil then
		return nil
	end
	local self = report.new("unittest", "python")
	local tail = string.match("\n" .. output, ".*\n(Ran %d+ tests? in .*)$") or ""
	local function count_of(word: string): number
		return tonumber((string.match(tail, word .. "=(%d+)"))) or 0
	end
	local lines = text.lines(output)
	self.errors = count_of("errors")
	self.failed = count_of("%(failures") + self.errors + count_of("unexpected successes")
	self.skipped = count_of("skipped") + count_of("expected failures")
	self.duration_ms = report.to_milliseconds(seconds)
	local verbose = add_named(self, lines)
	local letters = string.match("\n" .. output, "\n([%.EFsxu]+)\n")
	if verbose then
		self.passed = #self.passes
	elseif letters ~= nil then
		self.passed = #string.gsub(letters, "[^%.]", "")
	else
		self.passed = math.max(0, (tonumber(count) :: number) - self.failed - self.skipped)
	end
	-- What fails before a test begins (a class that cannot be set up) is not among those that unittest says it ran.
	self.total = self.passed + self.failed + self.skipped
	for at, line in lines do
		local kind, name = string.match(line, "^(%u[%u ]+): (.+)$")
		if kind == "FAIL" or kind == "ERROR" then
			local from = at + 1
			while from <= #lines and string.find(lines[from], "^%-%-%-%-%-") == nil do
				from += 1
			end
			local block = report.read_block(lines, from + 1, function(row)
				return string.find(row, "^=====") ~= nil or string.find(row, "^%-%-%-%-%-%-%-%-%-%-") ~= nil
			end)
			local failure = describe(name :: string, text.trim(block))
			failure.outcome = if kind == "ERROR" then "error" else "failed"
			report.add_failure(self, failure)
		elseif kind == "UNEXPECTED SUCCESS" then
			report.add_failure(
				self,
				{ test_name = name :: string, error_type = "AssertionError", error_message = "it was expected to fail, and passed" }
			)
		end
	end
	return self
end
