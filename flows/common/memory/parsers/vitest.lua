--!strict
--- Reads the output of vitest, by any of its reporters that name what failed.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Splits `FILE > GROUP > TEST`; a suite is `FILE [ FILE ]`.
local function split_name(said: string): (string, string?)
	local suite = string.match(said, "^(%S+) %[ .- %]$")
	if suite ~= nil then
		return suite, nil
	end
	local file, name = string.match(said, "^(.-) > (.+)$")
	return file or said, name
end

local function describe(file: string, name: string?, block: string): report.RawFailure
	local stack = frames.javascript(block)
	local test_line: number? = nil
	for _, frame in stack do
		test_line = if frame.file == file then frame.line else test_line
	end
	-- A file that cannot be parsed is named in the message.
	local parsed, line = string.match(block, "\n%s*File: ([^\n]-):(%d+):%d+\n")
	if parsed ~= nil then
		table.insert(stack, 1, { file = parsed, line = tonumber(line) })
	end
	-- What the code around a place looks like is no part of the message, nor are the frames.
	local kept = {}
	for _, row in text.lines(block) do
		if string.find(row, "^ ❯ ") or string.find(row, "^%s*%d* *|") or string.find(row, "^⎯") then
			break
		end
		table.insert(kept, row)
	end
	local message = text.trim(table.concat(kept, "\n"))
	local expected, actual = nil, nil
	if string.find(message, "\n%- Expected") then
		expected, actual = report.sides_of_diff(message)
		message = text.trim((string.gsub(message, "\n%- Expected.*$", "")))
	end
	return {
		test_name = name or `Test suite failed to run: {file}`,
		test_file = file,
		test_line = test_line,
		error_name = string.match(message, "^([%a_][%w_]*): "),
		error_message = message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

--- Adds the tests that are listed one by one: with `--reporter verbose` by their whole names, else by file.
local function add_listed(self: report.Report, lines: { string })
	local file: string? = nil
	for _, line in lines do
		local said = string.match(line, "^%s+✓ (.+)$")
		local skipped = string.match(line, "^%s+↓ (.+)$") or string.match(line, "^%s+□ (.+)$")
		local named = said or skipped or string.match(line, "^%s+❯ (.+)$")
		local listed = string.match(named or "", "^(%S+) %(%d+ tests?.*$")
		local plain, number = string.match(named or "", "^(.-) (%d+)m?s$")
		if string.find(line, "Failed Suites", 1, true) or string.find(line, "Failed Tests", 1, true) then
			break
		elseif listed ~= nil then
			file = listed
		elseif said ~= nil or skipped ~= nil then
			local whole = plain or named or ""
			local of, name = split_name(whole)
			local details = { file = if name then of else file, duration_ms = tonumber(number) }
			if said ~= nil then
				report.add_pass(self, name or whole, details)
			else
				report.add_skip(self, name or whole, details)
			end
		end
	end
end

return function(output: string): report.Report?
	local counts = string.match(output, "\n%s+Tests  ([^\n]+)")
	if counts == nil or string.find(output, "\n Test Files  ", 1, true) == nil then
		return nil
	end
	local self = report.new("vitest", "node")
	self.framework_version = string.match(output, "\n RUN%s+v(%d[%w%.%-]*)")
	self.failed = report.number_before(counts, "failed")
	self.passed = report.number_before(counts, "passed")
	self.skipped = report.number_before(counts, "skipped") + report.number_before(counts, "todo")
	local number, unit = string.match(output, "\n%s+Duration%s+([%d%.]+)(m?s)")
	local took = tonumber(number)
	self.duration_ms = if took then math.round(if unit == "s" then took * 1000 else took) else nil
	self.coverage_percent = tonumber(string.match(output, "\nAll files%s*|%s*([%d%.]+)"))
	local lines = text.lines(output)
	add_listed(self, lines)
	local suites = false
	for at, line in lines do
		suites = (suites or string.find(line, " Failed Suites ", 1, true) ~= nil) and string.find(line, " Failed Tests ", 1, true) == nil
		local said = string.match(line, "^ FAIL  (.+)$")
		if said == nil then
			continue
		end
		-- Failures of the same kind share one block.
		local from = at + 1
		while from <= #lines and string.find(lines[from], "^ FAIL  ") do
			from += 1
		end
		local block = report.read_block(lines, from, function(row)
			return string.find(row, "^⎯⎯") ~= nil
		end)
		local file, name = split_name((string.gsub(said, "^|[^|]*| ", "")))
		local failure = describe(file, name, block)
		if suites then
			-- A file that is not loaded, or a hook before all tests, is no test.
			failure.outcome = "error"
			self.failed += 1
			self.errors += 1
		end
		report.add_failure(self, failure)
	end
	self.total = self.passed + self.failed + self.skipped
	return self
end
