--!strict
--- Reads TAP, versions 13 and 14, as `node --test`, prove and many others write it.

local documents = require("@nietz/documents")
local report = require("./report")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

type Point = { indent: number, ok: boolean, name: string, directive: string, parent: boolean, note: documents.Document? }

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
			return if ok and type(value) == "table" then value else { error = text.trim(table.concat(rows, "\n")) }
		end
		table.insert(rows, string.sub(lines[index], #lead + 1))
	end
	return nil
end

local function test_points(lines: { string }): { Point }
	local found: { Point } = {}
	for at, line in lines do
		local lead, verdict, rest = string.match(line, "^( *)(n?o?t? ?ok)%f[%A](.*)$")
		if lead ~= nil and rest ~= nil and (verdict == "ok" or verdict == "not ok") then
			local indent = #lead
			local described, directive = string.match(rest, "^(.-)%s+#%s*(.+)$")
			local name = string.gsub(described or rest, "^%s*%d*%s*%-?%s*", "")
			-- Deeper results just before it are its subtests.
			local last = found[#found]
			table.insert(found, {
				indent = indent,
				ok = verdict == "ok",
				name = name,
				directive = string.lower(directive or ""),
				parent = last ~= nil and last.indent > indent,
				note = read_diagnostic(lines, at + 1, indent),
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

return function(output: string): report.Report?
	if string.find("\n" .. output, "\nTAP version %d+") == nil and string.find("\n" .. output, "\n1%.%.%d+") == nil then
		return nil
	end
	local lines = text.lines(output)
	local self = report.new("tap", if string.find(output, "\n# duration_ms ", 1, true) then "node" else nil)
	for _, point in test_points(lines) do
		local noted: documents.Document = point.note or {}
		if point.parent or noted.failureType == "subtestsFailed" then
			continue
		end
		self.total += 1
		if string.find(point.directive, "^skip") or string.find(point.directive, "^todo") then
			self.skipped += 1
		elseif point.ok then
			self.passed += 1
			table.insert(self.passes, point.name)
		else
			self.failed += 1
			local message = as_text(noted.error) or as_text(noted.message) or "not ok"
			-- Without a code and a name it is an assertion that failed.
			local assertion = noted.code == "ERR_ASSERTION" or (noted.code == nil and noted.name == nil)
			self.errors += if assertion then 0 else 1
			local at: report.Location?, source: report.Location? = parse_location(noted.location or noted.at), nil
			local stack = as_text(noted.stack) or ""
			for row in string.gmatch(stack, "[^\n]+") do
				local where = string.match(row, "([^%s%(%)]+:%d+:%d+)%)?$")
				local name = string.match(row, "^%s*(%S.-) %(")
				local own = where ~= nil and (string.find(where, "^/") or string.find(where, "^file:///")) ~= nil
				local here = if own then parse_location(where) else nil
				if here ~= nil and at ~= nil and here.file ~= at.file then
					here["function"] = name
					source = here
					break
				end
			end
			report.add_failure(self, {
				test_name = point.name,
				test_file = if at then at.file else nil,
				test_line = if at then at.line else nil,
				error_type = if assertion then "AssertionError" else nil,
				error_name = as_text(noted.name),
				error_message = message,
				stack_trace = stack,
				expected = as_text(noted.expected),
				actual = as_text(noted.actual),
				source_location = source,
			})
		end
	end
	self.duration_ms = tonumber(string.match(output, "\n# duration_ms ([%d%.]+)"))
	self.duration_ms = if self.duration_ms then math.round(self.duration_ms) else nil
	return self
end
