--!strict
--- Reads what Maven's Surefire and Gradle write at a terminal.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Returns a failure from what a runner of JUnit writes below its name: the exception, and its trace.
local function describe(name: string, class: string?, block: string): report.RawFailure
	local stack = frames.java(block)
	local message = text.trim((string.match("\n" .. block, "^(.-)\n%s+at ") or block))
	local kind, said = string.match(message, "^([%w_%.%$]+): (.*)$")
	kind = kind or string.match(message, "^([%w_%.%$]+)$")
	local expected, actual = report.expected_and_actual(message)
	-- The frame of the class whose test it is.
	local own: report.Location? = nil
	local tail = string.gsub(string.match(class or "", "^([^%$]+)") or "", "%.", "/")
	for _, frame in stack do
		local plain = string.gsub(frame.file, "%.%w+$", "")
		own = if tail ~= "" and (plain == tail or string.sub(plain, -#tail - 1) == "/" .. tail) then frame else own
	end
	return {
		test_name = name,
		test_file = if own then own.file else nil,
		test_line = if own then own.line else nil,
		error_name = kind,
		error_message = if kind and said then `{kind}: {said}` else message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

local jvm = {}

--- Returns what the compiler refused: `[ERROR] FILE:[LINE,COLUMN] MESSAGE`.
local function add_build_errors(self: report.Report, output: string)
	local seen: { [string]: boolean } = {}
	for file, line, message in string.gmatch(output, "\n%[ERROR%] (/[^\n]-):%[(%d+),%d+%] ([^\n]+)") do
		local key = `{file}:{line} {message}`
		if not seen[key] then
			seen[key] = true
			self.failed += 1
			self.errors += 1
			report.add_failure(self, {
				test_name = "build",
				outcome = "error",
				error_message = message,
				stack_trace = `{file}:{line}: {message}`,
				frames = { { file = file, line = tonumber(line) } },
			})
		end
	end
	self.total, self.unbuilt = self.failed, true
end

--- Reads Surefire: each failure below its class, and the sum at the end.
function jvm.maven(output: string): report.Report?
	local compiling = string.find(output, "\n[ERROR] COMPILATION ERROR", 1, true) ~= nil
	-- The sums of several modules are added up; lines with a time are those of one class.
	local self = report.new("maven", "java")
	local known = false
	for _, line in text.lines(output) do
		local total, failures, errors, skipped =
			string.match(line, "^%[%u+%] Tests run: (%d+), Failures: (%d+), Errors: (%d+), Skipped: (%d+)$")
		if total ~= nil then
			known = true
			self.errors += tonumber(errors) or 0
			self.failed += (tonumber(failures) or 0) + (tonumber(errors) or 0)
			self.skipped += tonumber(skipped) or 0
			self.total += tonumber(total) or 0
		end
		local seconds = string.match(line, "^%[%u+%] Tests run: .*Time elapsed: ([%d%.]+) s")
		if seconds ~= nil then
			self.duration_ms = (self.duration_ms or 0) + (report.to_milliseconds(seconds) or 0)
		end
	end
	if not known and not compiling then
		return nil
	end
	self.passed = math.max(0, self.total - self.failed - self.skipped)
	self.framework_version = string.match(output, "maven%-surefire%-plugin:(%d[%w%.%-]*):")
		or string.match(output, "%-%-%- surefire:(%d[%w%.%-]*):")
	if not known then
		add_build_errors(self, output)
		return self
	end
	local lines = text.lines(output)
	local class = ""
	for at, line in lines do
		class = string.match(line, "<<< %u+! %-%-? in (%S+)$") or class
		local name, seconds, kind = string.match(line, "^%[ERROR%] (.-)%s+Time elapsed: ([%d%.]+) s%s+<<< (%u+)!$")
		if name == nil then
			name, seconds, kind = string.match(line, "^%[ERROR%] (.-) %-%- Time elapsed: ([%d%.]+) s <<< (%u+)!$")
		end
		if name ~= nil and kind ~= nil and string.find(name, "^Tests run:") == nil then
			local block = report.read_block(lines, at + 1, function(row)
				return row == "" or string.find(row, "^%[%u+%] ") ~= nil
			end)
			-- Surefire 3 writes the class in front of the name.
			local whole = if string.find(name, class, 1, true) == 1 then name else `{class}.{name}`
			local failure = describe(whole, class, block)
			failure.duration_ms = report.to_milliseconds(seconds)
			failure.outcome = if kind == "ERROR" then "error" else "failed"
			report.add_failure(self, failure)
		end
	end
	return self
end

--- Reads Gradle: `CartTest > total() FAILED`, with the exception below, and how many tests there were.
function jvm.gradle(output: string): report.Report?
	local sums = string.find(output, "\n%d+ tests? completed") or string.find("\n" .. output, "\nBUILD %u+")
	if sums == nil and string.find("\n" .. output, "\n> Task :", 1, true) == nil then
		return nil
	end
	local lines = text.lines(output)
	local self = report.new("gradle", "java")
	local known = false
	for at, line in lines do
		local name, status = string.match(line, "^(%S.* > .+) (%u+)$")
		if name == nil or string.find(line, "^> Task ") then
			continue
		end
		if status == "PASSED" then
			self.passed += 1
			report.add_pass(self, name)
		elseif status == "SKIPPED" then
			self.skipped += 1
			report.add_skip(self, name)
		elseif status == "FAILED" then
			self.failed += 1
			local block = report.read_block(lines, at + 1, function(row)
				return row == "" or string.find(row, "^%S") ~= nil
			end)
			local failure = describe(name, string.match(name, "^(%S+) > "), text.trim(block))
			-- The short form: `org.opentest4j.AssertionFailedError at CartTest.java:19`.
			local kind, file, row = string.match(text.trim(block), "^([%w_%.%$]+) at (%S+%.%a+):(%d+)$")
			if kind ~= nil then
				local place: report.Location = { file = file :: string, line = tonumber(row), partial = true }
				failure.error_name, failure.error_message, failure.frames = kind, kind, { place }
				failure.test_file, failure.test_line = file, tonumber(row)
			end
			report.add_failure(self, failure)
		end
		known = known or status == "PASSED" or status == "SKIPPED" or status == "FAILED"
	end
	local completed, rest = string.match(output, "\n(%d+) tests? completed(,[^\n]*)")
	if not known and completed == nil then
		return nil
	end
	if completed ~= nil then
		-- What passed is only listed where the build asks for it.
		self.total = tonumber(completed) :: number
		self.failed = report.number_before(rest :: string, "failed")
		self.skipped = report.number_before(rest :: string, "skipped")
		self.passed = math.max(0, self.total - self.failed - self.skipped)
	end
	self.total = self.passed + self.failed + self.skipped
	return self
end

return jvm
