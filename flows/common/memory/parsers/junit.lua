--!strict
--- Reads JUnit XML, which most runners can write. Surer than any output, because nothing of it is guessed.

local errors = require("../errors")
local frames = require("./frames")
local report = require("./report")
local xml = require("@nietz/xml")

local function text_of(element: xml.Element): string
	local parts = {}
	for _, child in element.children do
		table.insert(parts, if type(child) == "string" then child else text_of(child))
	end
	return table.concat(parts)
end

--- Returns the failure that an element tells; its text is whatever the runner wrote, usually a trace.
local function describe(name: string, case: xml.Element, fault: xml.Element, suite: xml.Element?): report.RawFailure
	local attributes = case.attributes
	local body = text_of(fault)
	local message = fault.attributes.message or body
	local told: string?, line = attributes.file or (suite and suite.attributes.file), tonumber(attributes.line)
	local stack = frames.any(body)
	-- The outermost frame in the test's file, or in one that looks like a test's, is the test's own line.
	local class = string.gsub(string.match(attributes.classname or "", "^([^%$]+)") or "", "%.", "/")
	local test: report.Location? = nil
	for _, frame in stack do
		local plain = string.gsub(frame.file, "%.%w+$", "")
		local own = (
			told ~= nil
			and (
				frame.file == told
				or string.sub(frame.file, -#told - 1) == `/{told}`
				or string.sub(told, -#frame.file - 1) == `/{frame.file}`
			)
		) or (told == nil and (report.is_test(frame.file) or (class ~= "" and plain == class)))
		test = if own then frame else test
	end
	local file = told or (if test then test.file else nil)
	-- pytest counts lines from 0, and its line is that of the function.
	line = if line and suite and suite.attributes.name == "pytest" then line + 1 else line
	line = if test then test.line else line
	if file ~= nil and line ~= nil then
		table.insert(stack, { file = file, line = line, partial = if told == nil and test then test.partial else nil })
	end
	local expected, actual = report.expected_and_actual(message)
	local cause = string.match(body, "cause: ([%w_]*Error)") or string.match(body, "\n[^\n%s]+:%d+: ([%a_][%w_%.]*)%s*$")
	local error_name = cause or fault.attributes.type or string.match(message, "^([%a_][%w_%.]*): ")
	-- The text may hold the code as well, whose comparison is no assertion that failed.
	if expected == nil and errors.kind(error_name, message) == "AssertionError" then
		expected, actual = report.expected_and_actual(body)
	end
	-- PHPUnit begins with the name once more.
	message = string.gsub(message, "^[%w_\\]+::[^\n]*\n", "")
	if expected == nil and (string.find(body, "\n%s*%- Expected") or string.find(body, "\n%-%-%- Expected")) then
		expected, actual = report.sides_of_diff(body)
	end
	return {
		test_name = name,
		test_file = file,
		test_line = line,
		error_name = error_name,
		error_message = message,
		stack_trace = body,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
		outcome = if fault.name == "error" then "error" else "failed",
	}
end

local function add_case(self: report.Report, element: xml.Element, suite: xml.Element?)
	local attributes = element.attributes
	local group = attributes.classname or (suite and suite.attributes.name) or ""
	local name = if group == ""
			or attributes.name == nil
			or attributes.name == ""
			or attributes.name == group
		then (if group == "" then attributes.name or "" else group)
		else `{group}.{attributes.name}`
	self.total += 1
	-- GoogleTest lists what it did not run.
	local fault: xml.Element?, skipped: boolean = nil, attributes.status == "notrun" or attributes.result == "skipped"
	for _, child in element.children do
		if type(child) == "table" then
			if child.name == "failure" or child.name == "error" then
				fault = fault or child
			elseif child.name == "skipped" then
				skipped = true
			end
		end
	end
	local seconds = tonumber(attributes.time)
	local details =
		{ file = attributes.file, line = tonumber(attributes.line), duration_ms = if seconds then math.round(seconds * 1000) else nil }
	if fault == nil then
		if skipped then
			self.skipped += 1
			report.add_skip(self, name, details)
		else
			self.passed += 1
			report.add_pass(self, name, details)
		end
		return
	end
	self.failed += 1
	self.errors += if fault.name == "error" then 1 else 0
	local failure = describe(name, element, fault, suite)
	failure.duration_ms = details.duration_ms
	report.add_failure(self, failure)
end

local function walk(self: report.Report, element: xml.Element, suite: xml.Element?)
	for _, child in element.children do
		if type(child) == "table" then
			if child.name == "testcase" then
				add_case(self, child, suite)
			elseif child.name == "testsuite" then
				walk(self, child, child)
			end
		end
	end
end

--- Returns what a JUnit file says; raises `document-unreadable` where it is no XML.
return function(content: string): report.Report?
	local root = xml.decode(content)
	if root.name ~= "testsuites" and root.name ~= "testsuite" then
		return nil
	end
	local self = report.new("junit")
	walk(self, root, if root.name == "testsuite" then root else nil)
	local seconds = tonumber(root.attributes.time)
	if seconds == nil and root.name == "testsuites" then
		local sum = 0
		for _, child in root.children do
			sum += if type(child) == "table" then tonumber(child.attributes.time) or 0 else 0
		end
		seconds = sum
	end
	self.duration_ms = if seconds then math.round(seconds * 1000) else nil
	return self
end
