--!strict
--- Reads the output of mocha: its summary, which all reporters for people write, and the tree of `spec`.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Adds the tests of the tree, by the names of their groups and their own.
local function add_listed(self: report.Report, lines: { string })
	local groups: { { indent: number, name: string } } = {}
	for _, line in lines do
		if string.find(line, "^  %d+ passing") then
			break
		end
		local lead, rest = string.match(line, "^(%s+)(%S.*)$")
		if rest ~= nil then
			while #groups > 0 and groups[#groups].indent >= #(lead :: string) do
				table.remove(groups)
			end
			local parts = {}
			for _, group in groups do
				table.insert(parts, group.name)
			end
			local passed = string.match(rest, "^✔ (.+)$") or string.match(rest, "^✓ (.+)$")
			local pending = string.match(rest, "^%- (.+)$")
			if passed ~= nil then
				local plain, number = string.match(passed, "^(.-) %((%d+)ms%)$")
				table.insert(parts, plain or passed)
				report.add_pass(self, table.concat(parts, " › "), { duration_ms = tonumber(number) })
			elseif pending ~= nil then
				table.insert(parts, pending)
				report.add_skip(self, table.concat(parts, " › "))
			elseif string.find(rest, "^%d+%) ") == nil then
				table.insert(groups, { indent = #(lead :: string), name = rest })
			end
		end
	end
end

--- Returns the name that stands in several lines, the last of which ends in a colon; and the line behind it.
local function read_name(lines: { string }, at: number, first: string): (string, number)
	local parts = { first }
	local from = at
	while string.find(parts[#parts], ":$") == nil and from < #lines and from - at < 20 do
		from += 1
		table.insert(parts, text.trim(lines[from]))
	end
	parts[#parts] = string.gsub(parts[#parts], ":$", "")
	return table.concat(parts, " › "), from + 1
end

local function describe(name: string, block: string): report.RawFailure
	local stack = frames.javascript(block)
	local test: report.Location? = nil
	for _, frame in stack do
		test = if report.is_test(frame.file) then frame else test
	end
	local message = text.trim((string.match("\n" .. block, "^(.-)\n%s+at ") or block))
	local expected, actual = nil, nil
	local diff = string.match(message, "\n%s*%+ expected %- actual\n(.*)$")
	if diff ~= nil then
		actual, expected = report.sides_of_diff(diff)
		message = text.trim((string.match(message, "^(.-)\n%s*%+ expected %- actual\n")) or message)
	end
	-- A test that is too slow has no frame of its own, and its file in the message.
	local told = string.match(message, "%((/[^%(%)]+)%)$")
	return {
		test_name = name,
		test_file = if test then test.file else told,
		test_line = if test then test.line else nil,
		error_name = string.match(message, "^([%a_][%w_]*)[ :]"),
		error_type = if string.find(message, "Timeout of %d+ms exceeded") then "TimeoutError" else nil,
		error_message = message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

return function(output: string): report.Report?
	local passing, seconds = string.match(output, "\n  (%d+) passing %(([^%)]+)%)")
	local unloaded = string.match(output, "\n Exception during run: (.*)$")
	if passing == nil and unloaded == nil then
		return nil
	end
	local self = report.new("mocha", "node")
	if passing == nil then
		local failure = describe("Test suite failed to run", unloaded :: string)
		failure.outcome = "error"
		report.add_failure(self, failure)
		self.total, self.failed, self.errors, self.unbuilt = 1, 1, 1, true
		return self
	end
	local lines = text.lines(output)
	add_listed(self, lines)
	self.passed = tonumber(passing) or 0
	self.failed = tonumber(string.match(output, "\n  (%d+) failing")) or 0
	self.skipped = tonumber(string.match(output, "\n  (%d+) pending")) or 0
	self.total = self.passed + self.failed + self.skipped
	local number, unit = string.match(seconds or "", "^([%d%.]+)(m?s)$")
	local took = tonumber(number)
	self.duration_ms = if took then math.round(if unit == "s" then took * 1000 else took) else nil
	local failing = false
	for at, line in lines do
		failing = failing or string.find(line, "^  %d+ failing") ~= nil
		local first = if failing then string.match(line, "^  %d+%) (.+)$") else nil
		if first ~= nil then
			local name, from = read_name(lines, at, first)
			local block = report.read_block(lines, from, function(row)
				return string.find(row, "^  %d+%) ") ~= nil
			end)
			local failure = describe(name, block)
			local by_assertion = string.find(failure.error_name or "", "Assert", 1, true) ~= nil
			self.errors += if by_assertion then 0 else 1
			report.add_failure(self, failure)
		end
	end
	return self
end
