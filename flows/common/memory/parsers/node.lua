--!strict
--- Reads what node's own test runner writes for people (`--test-reporter=spec`, the default at a terminal), and what node says
--- of a file that it cannot load.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

local node = {}

--- Returns what stands in front of a result for a file that was not loaded: its error, and where that is. Nil where there is
--- no error.
function node.load_error(said: string): (string?, { report.Location })
	local message = string.match("\n" .. said, "\n([%w_]*Error[^\n]*: [^\n]*)")
	if message == nil then
		return nil, {}
	end
	local stack = frames.javascript(said)
	-- Where the error is in the text of a file: a line of its own, above the error.
	local file, line = string.match("\n" .. said, "\n(/[^\n]-):(%d+)\n")
	if file ~= nil then
		table.insert(stack, 1, { file = file, line = tonumber(line) })
	end
	return message, stack
end

--- Splits `NAME (1.5ms) # SKIP`.
local function split_result(said: string): (string, number?, string)
	local name, number, directive = string.match(said, "^(.-) %(([%d%.]+)ms%)(.*)$")
	local took = tonumber(number)
	local plain, mark = string.match(said, "^(.-)( # %u+.*)$")
	return name or plain or said, if took then math.round(took) else nil, directive or mark or ""
end

--- Adds the tests of the tree. A group is told before its tests and once more behind them.
local function add_listed(self: report.Report, lines: { string })
	local groups: { { indent: number, name: string } } = {}
	for _, line in lines do
		if string.find(line, "^ℹ tests ") then
			break
		end
		local lead, rest = string.match(line, "^(%s*)(%S.*)$")
		local opened = string.match(rest or "", "^▶ (.+)$")
		local passed = string.match(rest or "", "^✔ (.+)$")
		local skipped = string.match(rest or "", "^﹣ (.+)$")
		local failed = string.match(rest or "", "^✖ (.+)$")
		local said = opened or passed or skipped or failed
		if lead == nil or said == nil then
			continue
		end
		while #groups > 0 and groups[#groups].indent > #lead do
			table.remove(groups)
		end
		local name, took, directive = split_result(said)
		local last = groups[#groups]
		local closes = opened == nil and last ~= nil and last.indent == #lead and last.name == name
		while #groups > 0 and groups[#groups].indent >= #lead do
			table.remove(groups)
		end
		local parts = {}
		for _, group in groups do
			table.insert(parts, group.name)
		end
		table.insert(parts, name)
		if opened ~= nil then
			table.insert(groups, { indent = #lead, name = name })
		elseif skipped ~= nil or string.find(directive, "# TODO") or string.find(directive, "# SKIP") then
			report.add_skip(self, table.concat(parts, " › "), { duration_ms = took })
		elseif passed ~= nil and not closes then
			report.add_pass(self, table.concat(parts, " › "), { duration_ms = took })
		end
	end
end

--- Returns what node wrote between the result before and that of a file which it could not load.
local function said_before(lines: { string }, name: string): string
	for at, line in lines do
		if string.find(line, "✖ " .. name, 1, true) == 1 then
			local from = at
			while
				from > 1
				and string.find(lines[from - 1], "^%s*[✔✖▶ℹ] ?") == nil
				and string.find(lines[from - 1], "^Node%.js v") == nil
			do
				from -= 1
				if at - from > 60 then
					break
				end
			end
			-- Just above stands the version of node, which ends what it said.
			if from > 1 and string.find(lines[from - 1], "^Node%.js v") then
				local last = from - 1
				from = last
				while
					from > 1
					and string.find(lines[from - 1], "^✔ ") == nil
					and string.find(lines[from - 1], "^✖ ") == nil
					and last - from < 60
				do
					from -= 1
				end
			end
			return table.concat(lines, "\n", from, at - 1)
		end
	end
	return ""
end

--- Returns a failure as the list at the end tells it.
local function describe(place: string, name: string, block: string, lines: { string }): report.RawFailure
	local file, line = string.match(place, "^(.+):(%d+):%d+$")
	local stack = frames.javascript(block)
	local message = text.trim((string.match("\n" .. block, "^(.-)\n%s+at ") or block))
	message = string.match(message, "^'(.*)'$") or message
	if string.sub(name, 1, 1) == "/" and string.find(message, "^test failed") then
		local load, where = node.load_error(said_before(lines, name))
		message, stack = load or message, if load then where else stack
	end
	-- The test's own place comes last, for what has no frame.
	table.insert(stack, { file = file or place, line = tonumber(line) })
	local function value(key: string): string?
		return string.match(block, "\n%s+" .. key .. ": ([^\n]-),?\n")
	end
	local error_name = string.match(message, "^([%a_][%w_]*)")
	return {
		test_name = name,
		test_file = file,
		test_line = tonumber(line),
		error_name = if error_name and string.find(error_name, "Error$") then error_name else nil,
		error_type = if string.find(message, "^test timed out") then "TimeoutError" else nil,
		error_message = message,
		stack_trace = block,
		expected = value("expected"),
		actual = value("actual"),
		frames = frames.limited(stack),
	}
end

--- Reads the reporter for people.
function node.spec(output: string): report.Report?
	local tests = string.match(output, "\nℹ tests (%d+)\n")
	if tests == nil then
		return nil
	end
	local self = report.new("node", "node")
	local function count_of(word: string): number
		return tonumber((string.match(output, "\nℹ " .. word .. " ([%d%.]+)"))) or 0
	end
	self.passed = count_of("pass")
	self.skipped = count_of("skipped") + count_of("todo")
	self.duration_ms = math.round(count_of("duration_ms"))
	local lines = text.lines(output)
	add_listed(self, lines)
	local from = 0
	for at, line in lines do
		if string.find(line, "failing tests:", 1, true) then
			from = at
		end
	end
	for at, line in lines do
		local place = if from > 0 and at > from then string.match(line, "^test at (.+:%d+:%d+)$") else nil
		local said = if place then string.match(lines[at + 1] or "", "^✖ (.+)$") else nil
		if place ~= nil and said ~= nil then
			local block = report.read_block(lines, at + 2, function(row)
				return string.find(row, "^test at .+:%d+:%d+$") ~= nil
			end)
			local name, took = split_result(said)
			-- A group that failed by its tests is no failure of its own.
			if string.find(text.trim(block), "^'?%d+ subtests? failed'?$") == nil then
				local failure = describe(place, name, block, lines)
				failure.duration_ms = took
				local by_assertion = string.find(failure.error_name or "", "Assert", 1, true) ~= nil
				self.failed += 1
				self.errors += if by_assertion then 0 else 1
				report.add_failure(self, failure)
			end
		end
	end
	self.runtime_version = string.match(output, "\nNode%.js v(%d[%d%.]*)")
	if from == 0 then
		self.failed = count_of("fail") + count_of("cancelled")
	end
	self.total = self.passed + self.failed + self.skipped
	return self
end

return node
