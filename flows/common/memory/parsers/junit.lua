--!strict
--- Reads JUnit XML, which most runners can write. Surer than any output, because nothing of it is guessed.

local report = require("./report")
local xml = require("@nietz/xml")

local function text_of(element: xml.Element): string
	local parts = {}
	for _, child in element.children do
		table.insert(parts, if type(child) == "string" then child else text_of(child))
	end
	return table.concat(parts)
end

local function add_case(self: report.Report, element: xml.Element, suite: xml.Element?)
	local attributes = element.attributes
	local group = attributes.classname or (suite and suite.attributes.name) or ""
	local name = if group == "" or attributes.name == nil then attributes.name or group else `{group}.{attributes.name}`
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
	if fault == nil then
		if skipped then
			self.skipped += 1
		else
			self.passed += 1
			table.insert(self.passes, name)
		end
		return
	end
	self.failed += 1
	self.errors += if fault.name == "error" then 1 else 0
	local body = text_of(fault)
	local message = fault.attributes.message or body
	local file, line = attributes.file or (suite and suite.attributes.file), tonumber(attributes.line)
	local test, source = report.test_and_source(body)
	local expected, actual = report.expected_and_actual(body)
	if expected == nil then
		expected, actual = report.expected_and_actual(message)
	end
	report.add_failure(self, {
		test_name = name,
		test_file = file or (if test then test.file else nil),
		test_line = line or (if test and (file == nil or test.file == file) then test.line else nil),
		error_name = fault.attributes.type,
		error_message = message,
		stack_trace = body,
		expected = expected,
		actual = actual,
		source_location = source,
	})
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
