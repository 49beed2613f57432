--!strict
--- Reads the output of `cargo test` and of `cargo nextest`.

local report = require("./report")
local text = require("@nietz/text")

--- Reads what a test wrote when it panicked.
local function read_panic(name: string, block: string): report.RawFailure
	local failure: report.RawFailure = { test_name = name, error_message = block, stack_trace = block }
	local file, line, rest = string.match(block, "panicked at ([^\n]-):(%d+):%d+:\n(.*)")
	if file == nil then
		-- The form of Rust up to 1.72.
		local message
		message, file, line = string.match(block, "panicked at '(.-)', ([^\n]-):(%d+):%d+")
		rest = message
	end
	if file ~= nil then
		local kept = {}
		for _, row in text.lines(rest or "") do
			if string.find(row, "^note: ") ~= nil or string.find(row, "^stack backtrace:") ~= nil then
				break
			end
			table.insert(kept, row)
		end
		local message = text.trim(table.concat(kept, "\n"))
		failure.error_message = message
		failure.expected, failure.actual = report.expected_and_actual(message)
		local place = { file = file, line = tonumber(line) }
		failure.source_location = place
		if report.is_test(file) then
			failure.test_file, failure.test_line = place.file, place.line
		end
		failure.error_type = if string.find(message, "^assertion ") ~= nil then "AssertionError" else nil
		failure.error_name = if failure.error_type == nil then "RuntimeError" else nil
	end
	return failure
end

--- Adds what the compiler refused, when nothing could be run.
local function add_build_errors(self: report.Report, lines: { string })
	for at, line in lines do
		local code, message = string.match(line, "^error(%[?E?%d*%]?): (.+)$")
		if message ~= nil and string.find(message, "^could not compile") == nil and string.find(message, "^test failed") == nil then
			local block = report.read_block(lines, at + 1, function(row)
				return row == ""
			end)
			local file, number = string.match(block, "%-%-> ([^\n]-):(%d+):%d+")
			self.total += 1
			self.failed += 1
			self.errors += 1
			report.add_failure(self, {
				test_name = "build",
				error_message = `error{code}: {message}`,
				error_type = if string.find(message, "^expected ") then "SyntaxError" else nil,
				stack_trace = block,
				source_location = if file then { file = file, line = tonumber(number) } else nil,
			})
		end
	end
end

local rust = {}

function rust.nextest(output: string): report.Report?
	if string.find(output, "Summary %[") == nil then
		return nil
	end
	local self = report.new("nextest", "rust")
	local lines = text.lines(output)
	local seen: { [string]: boolean } = {}
	for at, line in lines do
		local status, rest = string.match(line, "^%s*(%u+) %[[^%]]*%]%s+(.+)$")
		local name = if rest then string.gsub(rest, "^%([%s%d/]+%)%s+", "") else nil
		if status == "PASS" and name ~= nil and not seen[name] then
			seen[name] = true
			table.insert(self.passes, name)
		elseif name ~= nil and status ~= "PASS" and not seen[name] and string.find(line, "Summary") == nil then
			seen[name] = true
			local block = report.read_block(lines, at + 1, function(row)
				return string.find(row, "^%s*%u+ %[[^%]]*%]") ~= nil or string.find(row, "^%s*Cancelling") ~= nil
			end)
			local plain = string.gsub(string.gsub(block, "\n    ", "\n"), "^    ", "")
			local failure = read_panic(name, plain)
			failure.error_type = if status == "TIMEOUT" then "TimeoutError" else failure.error_type
			report.add_failure(self, failure)
		end
		local duration, counts = string.match(line, "Summary %[%s*([%d%.]+)s%]%s+(.+)$")
		if counts ~= nil then
			self.duration_ms = report.to_milliseconds(duration)
			self.passed = report.number_before(counts, "passed")
			self.failed = report.number_before(counts, "failed") + report.number_before(counts, "timed out")
			self.skipped = report.number_before(counts, "skipped")
			self.total = self.passed + self.failed + self.skipped
		end
	end
	return self
end

function rust.cargo(output: string): report.Report?
	local compiled = string.find(output, "could not compile `", 1, true) == nil
	if string.find(output, "test result: ", 1, true) == nil and compiled then
		return nil
	end
	local self = report.new("cargo test", "rust")
	local lines = text.lines(output)
	for at, line in lines do
		local name, status = string.match(line, "^test (.-) %.%.%. (%a+)")
		if name ~= nil and status == "ok" then
			table.insert(self.passes, (string.gsub(name, " %- should panic$", "")))
		end
		local failed = string.match(line, "^%-%-%-%- (.-) std%a+ %-%-%-%-$")
		if failed ~= nil then
			local block = report.read_block(lines, at + 1, function(row)
				return row == "failures:" or string.find(row, "^%-%-%-%- .- std%a+ %-%-%-%-$") ~= nil
			end)
			report.add_failure(self, read_panic(failed, text.trim(block)))
		end
		local counts = string.match(line, "^test result: %a+%. (.+)$")
		if counts ~= nil then
			self.passed += report.number_before(counts, "passed")
			self.failed += report.number_before(counts, "failed")
			self.skipped += report.number_before(counts, "ignored")
			self.duration_ms = (self.duration_ms or 0) + (report.to_milliseconds(string.match(counts, "finished in ([%d%.]+)s")) or 0)
		end
	end
	self.total = self.passed + self.failed + self.skipped
	if not compiled then
		self.unbuilt = self.total == 0
		add_build_errors(self, lines)
	end
	return self
end

return rust
