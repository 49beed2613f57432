--!strict
--- Reads the output of `cargo test` and of `cargo nextest`.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- Lines of cargo's own that say `error: ` and are no error of the code.
local NO_ERRORS = {
	"^could not compile",
	"^%w*test failed",
	"^%d+ targets? failed",
	"^aborting due to",
	"^command `",
	"^test run failed",
	"^no tests to run",
}

--- Returns the rows up to the note or the backtrace that follows what a panic says.
local function read_said(rest: string): string
	local kept = {}
	for _, row in text.lines(rest) do
		if string.find(row, "^note: ") ~= nil or string.find(row, "^stack backtrace:") ~= nil then
			break
		end
		table.insert(kept, row)
	end
	return text.trim(table.concat(kept, "\n"))
end

--- Reads what a test wrote when it panicked, returned an error, or did not panic as it should.
local function read_panic(name: string, block: string): report.RawFailure
	local failure: report.RawFailure =
		{ test_name = name, error_message = block, stack_trace = block, frames = frames.limited(frames.rust(block)) }
	local file, line, rest = string.match(block, "panicked at ([^\n]-):(%d+):%d+:\n(.*)")
	if file == nil then
		-- The form of Rust up to 1.72.
		local message
		message, file, line = string.match(block, "panicked at '(.-)', ([^\n]-):(%d+):%d+")
		rest = message
	end
	if file ~= nil then
		local message = read_said(rest or "")
		failure.error_message = message
		if string.find(message, "`left != right`", 1, true) == nil then
			failure.expected, failure.actual = report.expected_and_actual(message)
		end
		if report.is_test(file) then
			failure.test_file, failure.test_line = file, tonumber(line)
		end
		failure.error_type = if string.find(message, "^assertion ") ~= nil then "AssertionError" else nil
		failure.error_name = if failure.error_type == nil then "RuntimeError" else nil
	end
	local returned = string.match("\n" .. block, "\nError: ([^\n]+)")
	if file == nil and returned ~= nil then
		failure.error_message, failure.error_name = returned, "RuntimeError"
	end
	local silent_file, silent_line = string.match(block, "note: test did not panic as expected at (.-):(%d+)")
	if silent_file ~= nil then
		failure.error_message, failure.error_type = "test did not panic as expected", "AssertionError"
		failure.frames = { { file = silent_file, line = tonumber(silent_line) } }
	elseif string.find(block, "note: test did not panic as expected", 1, true) then
		failure.error_message, failure.error_type = "test did not panic as expected", "AssertionError"
	end
	local panicked, wanted = string.match(block, 'panic message: "?([^\n]-)"?,?\n%s*expected substring: "?([^\n]-)"?\n')
	if panicked == nil then
		panicked, wanted = string.match(block .. "\n", 'panic message: "?([^\n]-)"?,?\n%s*expected substring: "?([^\n]-)"?\n')
	end
	if panicked ~= nil then
		failure.error_message = `panic did not contain expected string: {panicked}`
		failure.expected, failure.actual, failure.error_type = wanted, panicked, "AssertionError"
	end
	-- A test in the documentation runs in a program of its own; its name has its place.
	local documented, at = string.match(name, "^(.-%.rs) %- .*%(line (%d+)%)")
	if documented ~= nil then
		failure.test_file, failure.test_line = documented, tonumber(at)
		table.insert(failure.frames or {}, { file = documented, line = tonumber(at) })
	end
	return failure
end

--- Adds what the compiler refused, when nothing could be run.
local function add_build_errors(self: report.Report, lines: { string })
	local seen: { [string]: boolean } = {}
	for at, line in lines do
		local code, message = string.match(line, "^error(%[?E?%d*%]?): (.+)$")
		for _, pattern in NO_ERRORS do
			message = if message ~= nil and string.find(message, pattern) then nil else message
		end
		if message ~= nil then
			local block = report.read_block(lines, at + 1, function(row)
				return row == ""
			end)
			local file, number = string.match(block, "%-%-> ([^\n]-):(%d+):%d+")
			-- A library is compiled twice, for itself and for its tests.
			local key = `{message} {file}:{number}`
			if seen[key] then
				continue
			end
			seen[key] = true
			self.total += 1
			self.failed += 1
			self.errors += 1
			report.add_failure(self, {
				test_name = "build",
				outcome = "error",
				error_message = `error{code}: {message}`,
				error_type = if string.find(message, "^expected ") then "SyntaxError" else nil,
				stack_trace = block,
				frames = if file then { { file = file, line = tonumber(number) } } else nil,
			})
		end
	end
end

local rust = {}

--- What nextest says last of one test.
type Run = { name: string, status: string, block: string, duration_ms: number? }

function rust.nextest(output: string): report.Report?
	if string.find(output, "Summary %[") == nil then
		return nil
	end
	local self = report.new("nextest", "rust")
	local lines = text.lines(output)
	local runs: { Run } = {}
	local by_name: { [string]: Run } = {}
	local summed = false
	for at, line in lines do
		local duration, counts = string.match(line, "Summary %[%s*([%d%.]+)s%]%s+(.+)$")
		if counts ~= nil then
			-- Behind the sum each failure is named once more, without what it wrote.
			summed = true
			self.duration_ms = report.to_milliseconds(duration)
			self.passed = report.number_before(counts, "passed")
			self.failed = report.number_before(counts, "failed")
				+ report.number_before(counts, "timed out")
				+ report.number_before(counts, "exec failed")
			self.skipped = report.number_before(counts, "skipped")
			self.total = self.passed + self.failed + self.skipped
		end
		-- A test that is tried again is told each time: `TRY 2 FAIL`, `FLAKY 2/2`.
		local plain = string.gsub(string.gsub(line, "^(%s*)TRY %d+ ", "%1"), "^(%s*)FLAKY %d+/%d+ ", "%1FLAKY ")
		local status, seconds, rest = string.match(plain, "^%s*(%u+) %[ *>? *([%d%.]*)s? *%]%s+(.+)$")
		local name = if rest then string.gsub(rest, "^%([^%)]*%)%s+", "") else nil
		if counts == nil and name ~= nil and status ~= "SLOW" and status ~= "TERMINATING" then
			local known = by_name[name]
			if known == nil then
				known = { name = name, status = "", block = "" } :: Run
				by_name[name] = known
				table.insert(runs, known)
			end
			local block = report.read_block(lines, at + 1, function(row)
				return string.find(row, "^%s*[%u%d/ ]+ %[[^%]]*%]") ~= nil
					or string.find(row, "^%s*Cancelling") ~= nil
					or string.find(row, "^─") ~= nil
					or string.find(row, "^error: ") ~= nil
			end)
			known.status = status :: string
			known.block = if summed or text.trim(block) == "" then known.block else block
			known.duration_ms = report.to_milliseconds(seconds)
		end
	end
	for _, run in runs do
		local details = { duration_ms = run.duration_ms }
		if run.status == "PASS" or run.status == "LEAK" or run.status == "FLAKY" then
			report.add_pass(self, run.name, details)
		elseif run.status == "SKIP" then
			report.add_skip(self, run.name)
		else
			local plain = string.gsub(string.gsub(run.block, "\n    ", "\n"), "^    ", "")
			local failure = read_panic(run.name, plain)
			failure.duration_ms = run.duration_ms
			if run.status == "TIMEOUT" then
				failure.error_type = "TimeoutError"
			elseif string.find(run.status, "^SIG") ~= nil or run.status == "ABORT" then
				failure.error_type, failure.outcome = "RuntimeError", "error"
				self.errors += 1
				failure.error_message = string.match(plain, "%((test aborted[^\n]-)%)") or `ended by {run.status}`
			end
			report.add_failure(self, failure)
		end
	end
	return self
end

--- Adds a program of tests that ended without a result, by a signal or by `exit`.
local function add_abort(self: report.Report, program: string, lines: { string }, at: number)
	self.failed += 1
	self.errors += 1
	local why = string.match(lines[at], "%((sig.*)%)%s*$") or string.match(lines[at], "%((exit.*)%)%s*$") or lines[at]
	local block = table.concat(lines, "\n", math.max(1, at - 20), at)
	local stack = frames.rust(block)
	report.add_failure(self, {
		test_name = program,
		outcome = "error",
		error_type = "RuntimeError",
		error_message = `the tests did not end: {why}`,
		stack_trace = block,
		frames = stack,
	})
end

function rust.cargo(output: string): report.Report?
	local compiled = string.find(output, "could not compile `", 1, true) == nil
	local aborted = string.find(output, "process didn't exit successfully: `", 1, true) ~= nil
		and string.find("\n" .. output, "\nrunning %d+ tests?\n") ~= nil
	if string.find(output, "test result: ", 1, true) == nil and compiled and not aborted then
		return nil
	end
	local self = report.new("cargo test", "rust")
	local lines = text.lines(output)
	local program, ended = "the tests", true
	for at, line in lines do
		local name, status = string.match(line, "^test (.-) %.%.%. (%a+)")
		local plain = if name then (string.gsub(name, " %- should panic$", "")) else ""
		if name ~= nil and status == "ok" then
			report.add_pass(self, plain)
		elseif name ~= nil and status == "ignored" then
			report.add_skip(self, plain)
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
			ended = true
		end
		program = string.match(line, "^     Running (.-) %(") or string.match(line, "^   Doc%-tests (.+)$") or program
		ended = ended and string.find(line, "^running %d+ tests?$") == nil
		if not ended and string.find(line, "process didn't exit successfully: `", 1, true) ~= nil then
			add_abort(self, program, lines, at)
			ended = true
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
