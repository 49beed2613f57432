--!strict
--- Reads the output of pytest and of Python's own unittest.

local report = require("./report")
local text = require("@nietz/text")

--- Returns the first frame of a traceback in a test, and the last one in the code under test.
local function test_and_source(block: string): (report.Location?, report.Location?)
	local test: report.Location?, source: report.Location? = nil, nil
	for file, line, name in string.gmatch(block, 'File "([^"\n]+)", line (%d+), in ([^\n]+)') do
		local frame = { file = file, line = tonumber(line), ["function"] = name }
		if report.is_test(file) then
			test = test or frame
		elseif string.find(file, "/lib/python", 1, true) == nil then
			source = frame
		end
	end
	return test, source
end

local python = {}

function python.pytest(output: string): report.Report?
	local last: string? = nil
	local lines = text.lines(output)
	for _, line in lines do
		local counts = string.match(line, "^=* ?(%d+ %a+.-) in [%d%.]+s") or string.match(line, "^=+ (no tests ran) in")
		if
			counts ~= nil
			and (
				string.find(counts, "passed")
				or string.find(counts, "failed")
				or string.find(counts, "error")
				or string.find(counts, "skipped")
				or string.find(counts, "no tests ran")
				or string.find(counts, "xfail")
				or string.find(counts, "deselected")
			)
		then
			last = line
		end
	end
	if last == nil then
		return nil
	end
	local summary = last :: string
	local self = report.new("pytest", "python")
	self.runtime_version = string.match(output, "Python (%d[%d%.]*)")
	local errors = report.number_before(summary, "error")
	self.passed = report.number_before(summary, "passed") + report.number_before(summary, "xpassed")
	self.failed = report.number_before(summary, "failed") + errors
	self.errors = errors
	-- An expected failure counts as skipped: it proves nothing about what the test is for.
	self.skipped = report.number_before(summary, "skipped") + report.number_before(summary, "xfailed")
	self.total = self.passed + self.failed + self.skipped
	self.duration_ms = report.to_milliseconds(string.match(summary, "in ([%d%.]+)s"))
	self.coverage_percent = tonumber(string.match(output, "\nTOTAL%s.-(%d+%.?%d*)%%"))
	-- The sections, by the last word of their heading: a class's test is `Class.test`.
	local sections: { [string]: string } = {}
	for at, line in lines do
		local name = string.match(line, "^_+ (.-) _+$")
		if name ~= nil then
			sections[(string.gsub(name, "^ERROR %a+ %a* ?", ""))] = (
				report.read_block(lines, at + 1, function(row)
					return string.find(row, "^_+ .- _+$") ~= nil or string.find(row, "^=+ .- =+$") ~= nil
				end)
			)
		end
		local passed = string.match(line, "^(%S+::%S+) PASSED")
		if passed ~= nil then
			table.insert(self.passes, passed)
		end
	end
	for _, line in lines do
		local kind, id, said = string.match(line, "^(%u+) (%S+) %- (.*)$")
		if kind == nil then
			kind, id = string.match(line, "^(%u+) (%S+)$")
		end
		if id ~= nil and (kind == "FAILED" or kind == "ERROR") then
			local file = string.match(id, "^([^:]+)") or id
			local name = string.gsub(string.match(id, "::(.+)$") or id, "::", ".")
			local block = sections[name] or sections[`collecting {file}`] or ""
			local kept = {}
			for message in string.gmatch("\n" .. block, "\nE%s+([^\n]*)") do
				table.insert(kept, message)
			end
			local message = if #kept > 0 then table.concat(kept, "\n") else said or block
			local test_line: number?, at_file: string?, at_line: number?, error_name: string? = nil, nil, nil, nil
			for where, number, what in string.gmatch("\n" .. block, "\n([%w_%./%-]+):(%d+):? ?([%w_%.]*)") do
				at_file, at_line = where, tonumber(number)
				error_name = if what ~= "" and what ~= "in" then what else error_name
				test_line = test_line or (if where == file then at_line else nil)
			end
			local expected, actual = report.expected_and_actual(message)
			report.add_failure(self, {
				test_name = id,
				test_file = file,
				test_line = test_line,
				error_name = error_name,
				error_type = if string.find(message, "^assert ") then "AssertionError" else nil,
				error_message = message,
				stack_trace = block,
				expected = expected,
				actual = actual,
				source_location = if at_file ~= nil and at_file ~= file then { file = at_file, line = at_line } else nil,
			})
		end
	end
	return self
end

function python.unittest(output: string): report.Report?
	local count, seconds = string.match(output, "\nRan (%d+) tests? in ([%d%.]+)s")
	if count == nil then
		return nil
	end
	local self = report.new("unittest", "python")
	local tail = string.sub(output, (string.find(output, "\nRan %d+ tests? in ")) :: number)
	local function count_of(word: string): number
		return tonumber((string.match(tail, word .. "=(%d+)"))) or 0
	end
	self.total = tonumber(count) :: number
	self.errors = count_of("errors")
	self.failed = count_of("failures") + self.errors + count_of("unexpected successes")
	self.skipped = count_of("skipped") + count_of("expected failures")
	self.passed = math.max(0, self.total - self.failed - self.skipped)
	self.duration_ms = report.to_milliseconds(seconds)
	local lines = text.lines(output)
	for at, line in lines do
		local passed = string.match(line, "^(test[%w_]* %b()) %.%.%. ok$")
		if passed ~= nil then
			table.insert(self.passes, passed)
		end
		local name = string.match(line, "^FAIL: (.+)$") or string.match(line, "^ERROR: (.+)$")
		if name ~= nil then
			local block = text.trim((report.read_block(lines, at + 2, function(row)
				return string.find(row, "^=====") ~= nil or string.find(row, "^%-%-%-%-%-") ~= nil
			end)))
			local test, source = test_and_source(block)
			local message = string.match(block, "\n([%w_%.]+[Ee]%w*:? ?[^\n]*)$") or string.match(block, "([^\n]+)$") or block
			-- The message may have more lines; it begins behind the last line that is indented.
			message = string.match(block, "\n(%u[%w_%.]*: .*)$") or message
			local expected, actual = report.expected_and_actual(message)
			report.add_failure(self, {
				test_name = name,
				test_file = if test then test.file else nil,
				test_line = if test then test.line else nil,
				error_name = string.match(message, "^([%w_%.]+)"),
				error_message = message,
				stack_trace = block,
				expected = expected,
				actual = actual,
				source_location = source,
			})
		end
	end
	return self
end

return python
