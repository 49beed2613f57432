--!strict
--- Reads the output of jest, with or without `--verbose`.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Returns the block of one failure as it is told: its message, its values and its stack.
local function describe(name: string, file: string?, block: string): report.RawFailure
	local stack = frames.javascript(block)
	local test_line: number? = nil
	for _, frame in stack do
		-- The outermost frame in the test's file is the test's own line.
		local declares = frame["function"] ~= nil and string.find(frame["function"], "describe$") ~= nil
		if file ~= nil and not declares and (frame.file == file or string.sub(frame.file, -#file - 1) == `/{file}`) then
			test_line = frame.line
		end
	end
	local message = string.match(block, "^(.-)\n%s*\n?%s*>?%s*%d+ |") or string.match(block, "^(.-)\n%s*at ") or block
	local expected, actual =
		string.match(block, "\n%s*Expected[^:\n]*:%s*([^\n]+)"), string.match(block, "\n%s*Received[^:\n]*:%s*([^\n]+)")
	if expected == nil and string.find(block, "\n%s*%- Expected") then
		expected, actual = report.sides_of_diff(message)
	end
	-- A file that cannot be parsed: its place stands in the message.
	local parsed, line = string.match(block, "SyntaxError: (/[^\n]-): [^\n]-%((%d+):%d+%)")
	if parsed ~= nil then
		table.insert(stack, 1, { file = parsed, line = tonumber(line) })
		message = string.match(block, "(SyntaxError: [^\n]+)") or message
	end
	return {
		test_name = name,
		test_file = file,
		test_line = test_line,
		error_message = message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

--- Adds the tests that are listed one by one: those of one file, or all with --verbose.
local function add_listed(self: report.Report, lines: { string })
	local file: string? = nil
	local groups: { { indent: number, name: string } } = {}
	for _, line in lines do
		local named = string.match(line, "^FAIL%s+(%S+)") or string.match(line, "^PASS%s+(%S+)")
		if named ~= nil then
			file, groups = (string.gsub(named, "^%./", "")), {}
		elseif file ~= nil then
			local lead, rest = string.match(line, "^(%s+)(%S.*)$")
			if rest == nil or string.find(rest, "^●") then
				file = nil
				continue
			end
			while #groups > 0 and groups[#groups].indent >= #(lead :: string) do
				table.remove(groups)
			end
			local passed = string.match(rest, "^✓ (.+)$")
			local skipped = string.match(rest, "^○ skipped (.+)$") or string.match(rest, "^✎ todo (.+)$")
			local parts = {}
			for _, group in groups do
				table.insert(parts, group.name)
			end
			if passed ~= nil then
				local plain, number, unit = string.match(passed, "^(.-) %(([%d%.]+) (m?s)%)$")
				table.insert(parts, plain or passed)
				local took = tonumber(number)
				report.add_pass(self, table.concat(parts, " › "), {
					file = file,
					duration_ms = if took then math.round(if unit == "s" then took * 1000 else took) else nil,
				})
			elseif skipped ~= nil then
				table.insert(parts, skipped)
				report.add_skip(self, table.concat(parts, " › "), { file = file })
			elseif string.find(rest, "^✕") == nil then
				table.insert(groups, { indent = #(lead :: string), name = rest })
			end
		end
	end
end

return function(output: string): report.Report?
	local counts = string.match(output, "\nTests:%s+([^\n]+)")
	if counts == nil or string.find(output, "\nTest Suites:", 1, true) == nil then
		return nil
	end
	local self = report.new("jest", "node")
	self.failed = report.number_before(counts, "failed")
	self.passed = report.number_before(counts, "passed")
	self.skipped = report.number_before(counts, "skipped") + report.number_before(counts, "todo")
	self.total = report.number_before(counts, "total")
	self.duration_ms = report.to_milliseconds(string.match(output, "\nTime:%s+([%d%.]+) ?s"))
	self.coverage_percent = tonumber(string.match(output, "\nAll files%s*|%s*([%d%.]+)"))
	local lines = text.lines(output)
	add_listed(self, lines)
	local file: string? = nil
	local seen: { [string]: boolean } = {}
	for at, line in lines do
		local named = string.match(line, "^FAIL%s+(%S+)") or string.match(line, "^PASS%s+(%S+)")
		file = if named then (string.gsub(named, "^%./", "")) else file
		local name = string.match(line, "^%s+● (.+)$")
		-- A long run repeats its failures at the end.
		if name ~= nil and not seen[`{file} {name}`] and string.find(name, "^Console") == nil then
			seen[`{file} {name}`] = true
			local block = text.trim((report.read_block(lines, at + 1, function(row)
				return string.find(row, "^  ● ") ~= nil
					or string.find(row, "^Test Suites:") ~= nil
					or string.find(row, "^%u%u%u%u%s+%S+%.") ~= nil
			end)))
			local failure = describe(name, file, block)
			if name == "Test suite failed to run" then
				failure.test_name, failure.outcome = `{name}: {file or "unknown"}`, "error"
				self.errors += 1
				self.failed += 1
				self.total += 1
			end
			report.add_failure(self, failure)
		end
	end
	return self
end
