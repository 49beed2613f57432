--!strict
--- Reads the output of PHPUnit, plain or as `--testdox`.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

local function describe(name: string, block: string, outcome: string): report.RawFailure
	local stack = frames.php(block)
	local test: report.Location? = nil
	for _, frame in stack do
		test = if report.is_test(frame.file) then frame else test
	end
	local kept = {}
	for _, row in text.lines(block) do
		if string.find(row, "^/.*%.php:%d+$") then
			break
		end
		table.insert(kept, row)
	end
	local message = text.trim(table.concat(kept, "\n"))
	local expected, actual = report.expected_and_actual(message)
	if actual == nil and string.find(message, "\n%-%-%- Expected\n") then
		expected, actual = report.sides_of_diff(message)
	end
	local class = string.match(message, "^([%a_][%w_\\]*): ")
	return {
		test_name = name,
		test_file = if test then test.file else nil,
		test_line = if test then test.line else nil,
		error_name = string.match(class or "", "([%w_]+)$"),
		error_type = if outcome == "failed" then "AssertionError" elseif class == nil then "RuntimeError" else nil,
		error_message = message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
		outcome = outcome,
	}
end

--- Adds what the list at the end tells: errors, failures, and with -v what was skipped.
local function add_listed(self: report.Report, lines: { string })
	local kind: string? = nil
	for at, line in lines do
		local heading = string.match(line, "^There w%a+ %d+ (.-):$")
		kind = heading or (if line == "--" then nil else kind)
		local name = string.match(line, "^%d+%) (.+)$")
		if name ~= nil and kind ~= nil then
			local block = text.trim((report.read_block(lines, at + 1, function(row)
				return string.find(row, "^%d+%) ") ~= nil
					or row == "--"
					or string.find(row, "^ERRORS!$") ~= nil
					or string.find(row, "^FAILURES!$") ~= nil
					or string.find(row, "^WARNINGS!$") ~= nil
					or string.find(row, "^OK") ~= nil
			end)))
			if string.find(kind :: string, "^error") or string.find(kind :: string, "^PHPUnit error") then
				report.add_failure(self, describe(name, block, "error"))
			elseif string.find(kind :: string, "^failure") then
				report.add_failure(self, describe(name, block, "failed"))
			elseif
				string.find(kind :: string, "skipped")
				or string.find(kind :: string, "incomplete")
				or string.find(kind :: string, "risky")
			then
				report.add_skip(self, name)
			end
		end
	end
end

--- Adds what `--testdox` tells: a class, and its tests in words.
local function add_described(self: report.Report, lines: { string })
	local class = ""
	for at, line in lines do
		local _, named = string.match(line, "^(%S.*) %(([%w_\\]+)%)$")
		class = named or class
		local passed = string.match(line, "^ ✔ (.+)$")
		local failed = string.match(line, "^ ✘ (.+)$")
		local skipped = string.match(line, "^ ↩ (.+)$") or string.match(line, "^ ∅ (.+)$") or string.match(line, "^ ☢ (.+)$")
		if passed ~= nil then
			report.add_pass(self, `{class} › {passed}`)
		elseif skipped ~= nil then
			report.add_skip(self, `{class} › {skipped}`)
		elseif failed ~= nil then
			local rows = {}
			for index = at + 1, #lines do
				local row = string.match(lines[index], "^   [│├┐┴╵]+ ?(.*)$")
				if row == nil then
					break
				end
				table.insert(rows, (string.gsub(row, "^[\128-\255]+ ?", "")))
			end
			local block = text.trim(table.concat(rows, "\n"))
			local outcome = if string.find(block, "Failed asserting", 1, true) then "failed" else "error"
			report.add_failure(self, describe(`{class} › {failed}`, block, outcome))
		end
	end
end

return function(output: string): report.Report?
	local version = string.match("\n" .. output, "\nPHPUnit (%d[%w%.%-]*) by ")
	local fatal, at, number = string.match(output, "PHP %a+ error:  Uncaught ([%w_\\]+: [^\n]-) in (/[^\n]-%.php):(%d+)\n")
	if version == nil and (fatal == nil or string.find(output, "PHPUnit\\", 1, true) == nil) then
		return nil
	end
	local self = report.new("phpunit", "php")
	self.framework_version = version
	self.runtime_version = string.match(output, "\nRuntime:%s+PHP (%d[%d%.]*)")
	if fatal ~= nil then
		report.add_failure(self, {
			test_name = "loading of the tests",
			outcome = "error",
			error_name = string.match(fatal, "^([%w_\\]+)"),
			error_message = fatal,
			stack_trace = output,
			frames = { { file = at :: string, line = tonumber(number) } },
		})
		self.total, self.failed, self.errors, self.unbuilt = 1, 1, 1, true
		return self
	end
	local tests = string.match(output, "\nOK %((%d+) tests?,")
	local counts = string.match(output, "\n(Tests: %d+, [^\n]+)")
	local empty = string.find(output, "\nNo tests executed!", 1, true) ~= nil
	if tests == nil and counts == nil and not empty then
		return nil
	end
	local function count_of(word: string): number
		return tonumber((string.match(counts or "", `{word}: (%d+)`))) or 0
	end
	local lines = text.lines(output)
	if string.find(output, "\n [✔✘]") and string.find(output, "\n ✔ ") or string.find(output, "\n ✘ ") then
		add_described(self, lines)
	else
		add_listed(self, lines)
	end
	self.errors = count_of("Errors")
	self.failed = self.errors + count_of("Failures")
	-- A risky test asserted nothing: it proves as little as one that is skipped.
	self.skipped = count_of("Skipped") + count_of("Incomplete") + count_of("Risky")
	self.total = tonumber(tests) or count_of("Tests")
	self.passed = math.max(0, self.total - self.failed - self.skipped)
	local minutes, seconds = string.match(output, "\nTime: (%d+):([%d%.]+)")
	local took = tonumber(seconds)
	self.duration_ms = if took then math.round(1000 * (took + 60 * (tonumber(minutes) or 0))) else nil
	self.coverage_percent = tonumber(string.match(output, "\n%s*Lines:%s+([%d%.]+)%%"))
	return self
end
