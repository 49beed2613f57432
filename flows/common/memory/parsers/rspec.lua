--!strict
--- Reads the output of RSpec, as progress or as documentation.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Returns a block without the indentation of its first row.
local function outdent(block: string): string
	local rows = text.lines(block)
	local lead = string.match(rows[1] or "", "^(%s*)") or ""
	for index, row in rows do
		rows[index] = if string.sub(row, 1, #lead) == lead then string.sub(row, #lead + 1) else (string.gsub(row, "^%s+", ""))
	end
	return table.concat(rows, "\n")
end

--- Reads one failure: the code that failed, what is wrong, and the stack in lines that begin with `#`.
local function describe(name: string, block: string): report.RawFailure
	local body = outdent(block)
	local stack = frames.ruby(body)
	local said = text.trim((string.match(body, "^(.-)\n%s*# ") or body))
	local code, rest = string.match(said, "^Failure/Error: ([^\n]*)\n(.*)$")
	local class, message: string? = nil, nil
	class, message = string.match(rest or said, "^%s*(%u[%w_:]*):\n(.*)$")
	local told = text.trim(message or rest or said)
	-- A file with an error in its syntax is named in the message.
	local parsed, line = string.match(told, "^%s*(/[^\n:]+%.rb):(%d+): ")
	if parsed ~= nil then
		table.insert(stack, 1, { file = parsed, line = tonumber(line) })
	end
	local expected, actual = report.expected_and_actual(told)
	local by_assertion = class == nil and code ~= nil
		or class == "RSpec::Expectations::ExpectationNotMetError"
		or string.find(told, "^Got %d+ failures") ~= nil
		or string.find(told, "^Expected pending ") ~= nil
	return {
		test_name = name,
		error_name = class,
		error_type = if by_assertion then "AssertionError" else nil,
		error_message = if class then `{class}: {told}` else told,
		stack_trace = body,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
		outcome = if by_assertion or class == nil then "failed" else "error",
	}
end

--- Adds the examples that the documentation lists: a row is a group where the next one stands deeper. They are believed only if
--- they are as many as RSpec counts.
local function add_listed(self: report.Report, lines: { string })
	local rows: { { indent: number, said: string } } = {}
	for _, line in lines do
		if string.find(line, "^Pending:") or string.find(line, "^Failures:") or string.find(line, "^Finished in ") then
			break
		elseif string.find(line, "^[%.F%*]+$") then
			return
		elseif string.find(line, "^%s*%S") and string.find(line, "^Run options:") == nil and string.find(line, "^Randomized") == nil then
			local lead = string.match(line, "^(%s*)") or ""
			table.insert(rows, { indent = #lead, said = text.trim(line) })
		end
	end
	local names: { string }, pending: { string }, path: { { indent: number, said: string } } = {}, {}, {}
	for at, row in rows do
		while #path > 0 and path[#path].indent >= row.indent do
			table.remove(path)
		end
		local below = rows[at + 1]
		if below ~= nil and below.indent > row.indent then
			table.insert(path, row)
		else
			local name = ""
			local plain = string.gsub(string.gsub(row.said, " %(FAILED %- %d+%)$", ""), " %(PENDING: .*%)$", "")
			for _, group in path do
				name ..= if string.find(group.said, "^[#%.:]") or name == "" then group.said else " " .. group.said
			end
			local whole = if name == "" then plain else `{name} {plain}`
			if string.find(row.said, " %(PENDING: .*%)$") then
				table.insert(pending, whole)
			elseif string.find(row.said, " %(FAILED %- %d+%)$") == nil then
				table.insert(names, whole)
			end
		end
	end
	if #names == self.passed then
		for _, name in names do
			report.add_pass(self, name)
		end
	end
	if #pending == self.skipped then
		for _, name in pending do
			report.add_skip(self, name)
		end
	end
end

return function(output: string): report.Report?
	local examples, failures, more = string.match("\n" .. output, "\n(%d+) examples?, (%d+) failures?([^\n]*)")
	if examples == nil or string.find("\n" .. output, "\nFinished in ", 1, true) == nil then
		return nil
	end
	local self = report.new("rspec", "ruby")
	local outside = tonumber(string.match(more or "", "(%d+) errors? occurred outside")) or 0
	self.skipped = tonumber(string.match(more or "", "(%d+) pending")) or 0
	self.failed = (tonumber(failures) :: number) + outside
	self.passed = math.max(0, (tonumber(examples) :: number) - (tonumber(failures) :: number) - self.skipped)
	self.total = self.passed + self.failed + self.skipped
	self.errors = outside
	self.unbuilt = examples == "0" and outside > 0
	local minutes, seconds = string.match(output, "\nFinished in (%d+) minutes? ([%d%.]+) seconds?")
	seconds = seconds or string.match(output, "\nFinished in ([%d%.]+) seconds?")
	local took = tonumber(seconds)
	self.duration_ms = if took then math.round(1000 * (took + 60 * (tonumber(minutes) or 0))) else nil
	local lines = text.lines(output)
	add_listed(self, lines)
	-- The end lists where each failed example begins.
	local begins: { [string]: report.Location } = {}
	for _, line in lines do
		local file, number, name = string.match(line, "^rspec (%S+):(%d+) # (.+)$")
		if name ~= nil then
			begins[name] = { file = (string.gsub(file :: string, "^%./", "")), line = tonumber(number) }
		end
	end
	local failing = false
	for at, line in lines do
		failing = (failing or line == "Failures:") and string.find(line, "^Finished in ") == nil
		local name = if failing then string.match(line, "^  %d+%) (.+)$") else nil
		local unloaded = string.match(line, "^An error occurred while loading (.-)%.?$")
			or string.match(line, "^An error occurred in an? (.-)%.?$")
		if name ~= nil or unloaded ~= nil then
			local block = report.read_block(lines, at + 1, function(row)
				return string.find(row, "^  %d+%) ") ~= nil
					or string.find(row, "^Finished in ") ~= nil
					or string.find(row, "^An error occurred ") ~= nil
					or string.find(row, "^No examples found") ~= nil
					or string.find(row, "^Failed examples:") ~= nil
			end)
			local plain = string.gsub(name or `loading {unloaded}`, " FIXED$", "")
			local failure = describe(plain, (string.gsub(block, "^\n+", "")))
			local begin = begins[plain]
			if begin ~= nil then
				failure.test_file, failure.test_line = begin.file, begin.line
				table.insert(failure.frames :: { report.Location }, begin)
			elseif unloaded ~= nil then
				failure.test_file = string.match(unloaded, "^%./(.+)$") or failure.test_file
				failure.outcome = "error"
			end
			report.add_failure(self, failure)
			self.errors += if unloaded == nil and failure.outcome == "error" then 1 else 0
		end
	end
	return self
end
