--!strict
--- Reads TAP, versions 13 and 14, as `node --test`, prove and many others write it.

local documents = require("@nietz/documents")
local frames = require("./frames")
local node = require("./node")
local report = require("./report")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

type Point = {
	indent: number,
	ok: boolean,
	name: string,
	directive: string,
	parent: boolean,
	note: documents.Document?,
	--- What stands around it as text: comments above (node) or below (Perl), and rows that are indented (mocha).
	above: string,
	below: string,
}

--- Reads a block that is no YAML, because a text of several lines is not indented: vitest writes such.
local function read_loosely(rows: { string }): documents.Document
	local all = table.concat(rows, "\n")
	local function value(key: string): string?
		return string.match("\n" .. all, `\n%s*{key}: "(.-)"\n`) or string.match(all .. "\n", `\n%s*{key}: "(.-)"\n`)
	end
	local message = value("message")
	if message == nil then
		return { error = text.trim(all) }
	end
	return { name = value("name"), message = message, at = value("at"), expected = value("expected"), actual = value("actual") }
end

--- Returns comments (`# …`) or indented rows next to a result, as text.
local function read_comments(lines: { string }, at: number, step: number, pattern: string): string
	local rows: { string } = {}
	local index = at + step
	while index >= 1 and index <= #lines do
		local said = string.match(lines[index], pattern)
		-- The name of a test stands in front of it, and the sums behind the last one.
		if said == nil or string.find(said, "^%l+ %d+$") then
			break
		elseif string.find(said, "^Subtest: ") == nil then
			table.insert(rows, if step > 0 then #rows + 1 else 1, said)
		end
		index += step
	end
	return table.concat(rows, "\n")
end

--- Returns the YAML block (`---` to `...`) that describes a result; nil where there is none.
local function read_diagnostic(lines: { string }, at: number, indent: number): documents.Document?
	local first = lines[at]
	local lead = if first then string.match(first, "^( *)%-%-%-%s*$") else nil
	if lead == nil or #lead < indent then
		return nil
	end
	local rows = {}
	for index = at + 1, #lines do
		if string.match(lines[index], "^ *(.-)%s*$") == "..." then
			local ok, value = pcall(yaml.decode, table.concat(rows, "\n"))
			return if ok and type(value) == "table" then value else read_loosely(rows)
		end
		-- Rows of a text that is not indented stay whole.
		local lead_of = string.match(lines[index], "^ *") or ""
		table.insert(rows, string.sub(lines[index], math.min(#lead, #lead_of) + 1))
	end
	return nil
end

local function test_points(lines: { string }): { Point }
	local found: { Point } = {}
	-- Where braces enclose the results of a group, they come behind its own; else before it.
	local braces = false
	for _, line in lines do
		braces = braces or (string.find(line, "^ *n?o?t? ?ok .*{$") ~= nil)
	end
	for at, line in lines do
		local lead, verdict, rest = string.match(line, "^( *)(n?o?t? ?ok)%f[%A](.*)$")
		if lead ~= nil and rest ~= nil and (verdict == "ok" or verdict == "not ok") then
			local indent = #lead
			local described, directive = string.match(rest, "^(.-)%s+#%s*(.+)$")
			local name = string.gsub(described or rest, "^%s*%d*%s*%-?%s*", "")
			name = string.gsub(name, "\\#", "#")
			-- What tells a time is no directive, and a brace opens a group: vitest writes both.
			local group = string.find(rest, "{$") ~= nil
			directive = if directive and string.find(directive, "^time=") then "" else directive
			-- Deeper results just before it are its subtests.
			local last = found[#found]
			table.insert(found, {
				indent = indent,
				ok = verdict == "ok",
				name = name,
				directive = string.lower(directive or ""),
				parent = group or (not braces and last ~= nil and last.indent > indent),
				note = read_diagnostic(lines, at + 1, indent),
				above = read_comments(lines, at, -1, "^ *# ?(.*)$"),
				below = if verdict == "ok" then "" else read_comments(lines, at, 1, `^{lead}#? ? ?(%s.*)$`),
			})
		end
	end
	return found
end

--- Returns the place in `file:///a/b.js:3:5` or `/a/b.js:3:5`.
local function parse_location(value: unknown): report.Location?
	if type(value) ~= "string" then
		return nil
	end
	local file, line = string.match((string.gsub(value, "^file://", "")), "^([^:]+):(%d+)")
	return if file then { file = file, line = tonumber(line) } else nil
end

local function as_text(value: unknown): string?
	return if value == nil or type(value) == "table" then nil else tostring(value)
end

local function duration(noted: documents.Document): number?
	local took = tonumber(noted.duration_ms)
	return if took then math.round(took) else nil
end

--- Returns the failure that a result and what stands beside it tell.
local function describe(self: report.Report, point: Point, noted: documents.Document): report.RawFailure
	local nested: documents.Document = if type(noted.error) == "table" then noted.error else {}
	local name = as_text(noted.name) or as_text(nested.name)
	local message = as_text(noted.error) or as_text(noted.message) or as_text(nested.message)
	local at = parse_location(noted.location)
	local told = parse_location(noted.at)
	local stack = as_text(noted.stack) or ""
	local places = frames.javascript(stack)
	if message == "test failed" then
		-- A file that node could not load is a test of that name; what is wrong stands above it.
		local load, where = node.load_error(point.above)
		message, places, stack = load or message, if load then where else places, if load then point.above else stack
		name = if load then string.match(load, "^([%a_][%w_]*)") else name
	elseif message == nil and point.below ~= "" then
		message = text.trim((string.match("\n" .. point.below, "^(.-)\n%s+at ") or point.below))
		places, stack = frames.any(point.below), point.below
		name = string.match("\n" .. point.below, "\n%s*([%w_]*Error)[ :]")
	end
	if told ~= nil then
		table.insert(places, told)
	end
	if at ~= nil then
		table.insert(places, at)
	end
	-- Without a code and a name it is an assertion that failed.
	local untold = noted.code == nil
		and name == nil
		and (point.note ~= nil or point.below == "" or string.find(point.below, "Failed test", 1, true) ~= nil)
	local assertion = noted.code == "ERR_ASSERTION" or name == "AssertionError" or untold
	self.errors += if assertion then 0 else 1
	local expected, actual = as_text(noted.expected), as_text(noted.actual)
	if expected == nil and point.note == nil and point.below ~= "" then
		expected, actual = report.expected_and_actual("\n" .. point.below)
	end
	local test = at
	for _, place in places do
		test = test or (if report.is_test(place.file) then place else nil)
	end
	return {
		test_name = point.name,
		test_file = if test then test.file else nil,
		test_line = if test then test.line else nil,
		error_type = if assertion then "AssertionError" else nil,
		error_name = name,
		error_message = message or "not ok",
		stack_trace = stack,
		expected = expected,
		actual = actual,
		frames = frames.limited(places),
		outcome = if assertion then "failed" else "error",
		duration_ms = duration(noted),
	}
end

return function(output: string): report.Report?
	if string.find("\n" .. output, "\nTAP version %d+") == nil and string.find("\n" .. output, "\n1%.%.%d+") == nil then
		return nil
	end
	local lines = text.lines(output)
	local self = report.new("tap", if string.find(output, "\n# duration_ms ", 1, true) then "node" else nil)
	for _, point in test_points(lines) do
		local noted: documents.Document = point.note or {}
		local own = not point.ok and noted.failureType ~= nil and noted.failureType ~= "subtestsFailed"
		if (point.parent and not own) or noted.failureType == "subtestsFailed" then
			continue
		end
		self.total += 1
		if string.find(point.directive, "^skip") or string.find(point.directive, "^todo") then
			self.skipped += 1
			report.add_skip(self, point.name)
		elseif point.ok then
			self.passed += 1
			report.add_pass(self, point.name, { duration_ms = duration(noted) })
		else
			self.failed += 1
			report.add_failure(self, describe(self, point, noted))
		end
	end
	self.duration_ms = tonumber(string.match(output, "\n# duration_ms ([%d%.]+)"))
	self.duration_ms = if self.duration_ms then math.round(self.duration_ms) else nil
	return self
end
