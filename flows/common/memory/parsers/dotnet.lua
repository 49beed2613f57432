--!strict
--- Reads what `dotnet test` writes at a terminal, by VSTest.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Returns what stands below a heading of a failure, up to the next one.
local function section(block: string, heading: string): string
	local rows, inside = {}, false
	for _, row in text.lines(block) do
		local named = string.match(row, "^%s*(%u[%a ]+):$")
		if named == heading then
			inside = true
		elseif named == "Error Message" or named == "Stack Trace" or named == "Standard Output Messages" then
			inside = false
		elseif inside then
			table.insert(rows, row)
		end
	end
	return text.trim(table.concat(rows, "\n"))
end

local function milliseconds(took: string?): number?
	local number, unit = string.match(took or "", "([%d%.]+) (m?s)")
	local value = tonumber(number)
	return if value then math.round(if unit == "s" then value * 1000 else value) else nil
end

return function(output: string): report.Report?
	local self = report.new("dotnet", "dotnet")
	local known = false
	-- One line for each assembly; the older form is one sum in several lines.
	for failed, passed, skipped in string.gmatch(output, "%- Failed:%s+(%d+), Passed:%s+(%d+), Skipped:%s+(%d+), Total:%s+%d+") do
		known = true
		self.failed += tonumber(failed) or 0
		self.passed += tonumber(passed) or 0
		self.skipped += tonumber(skipped) or 0
	end
	if not known then
		if string.find(output, "\nTotal tests: %d+\n") == nil then
			return nil
		end
		self.failed = tonumber(string.match(output, "\n%s+Failed: (%d+)")) or 0
		self.passed = tonumber(string.match(output, "\n%s+Passed: (%d+)")) or 0
		self.skipped = tonumber(string.match(output, "\n%s+Skipped: (%d+)")) or 0
	end
	self.total = self.passed + self.failed + self.skipped
	self.duration_ms = milliseconds(string.match(output, "Duration: ([%d%.]+ m?s)"))
	local lines = text.lines(output)
	for at, line in lines do
		local status, name, took = string.match(line, "^%s*(%a+) (.-) %[(.-)%]$")
		if status == "Passed" and name ~= nil then
			report.add_pass(self, name, { duration_ms = milliseconds(took) })
		elseif status == "Skipped" and name ~= nil then
			report.add_skip(self, name)
		elseif status == "Failed" and name ~= nil then
			local block = report.read_block(lines, at + 1, function(row)
				return string.find(row, "^%s*%a+ .- %[.-%]$") ~= nil and string.find(row, "^%s*at ") == nil
					or string.find(row, "^%a+!%s+%- Failed:") ~= nil
					or string.find(row, "^Total tests:") ~= nil
			end)
			local message, stack = section(block, "Error Message"), frames.dotnet(block)
			local test: report.Location? = nil
			for _, frame in stack do
				test = if report.is_test(frame.file) then frame else test
			end
			local expected, actual = report.expected_and_actual(message)
			report.add_failure(self, {
				test_name = name,
				test_file = if test then test.file else nil,
				test_line = if test then test.line else nil,
				error_name = string.match(message, "^([%w_%.]+) : ") or (if string.find(message, "^Assert") then "AssertionError" else nil),
				error_message = message,
				stack_trace = section(block, "Stack Trace"),
				expected = expected,
				actual = actual,
				frames = frames.limited(stack),
				duration_ms = milliseconds(took),
			})
		end
	end
	return self
end
