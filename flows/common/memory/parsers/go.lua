--!strict
--- Reads the output of `go test`: plain, with -v, and with -json.

local frames = require("./frames")
local json = require("@nietz/json")
local report = require("./report")
local text = require("@nietz/text")

--- What one package wrote.
type Package = { name: string, lines: { string }, remark: string, verdict: string }
--- One test of a package, as it is put together.
type Case = { name: string, status: string, duration_ms: number?, said: { string } }

--- Returns -json as the lines that `go test -v` would have written, one package after the other; nil where it is no -json.
local function from_json(output: string): string?
	if string.find("\n" .. output, '\n{"[^\n]*"Action":"') == nil then
		return nil
	end
	local order: { string }, said: { [string]: { string } } = {}, {}
	local plain: { string } = {}
	for _, line in text.lines(output) do
		local ok, event = pcall(json.decode, line)
		if string.find(line, "^{") == nil or not ok or type(event) ~= "table" then
			table.insert(plain, line .. "\n")
		elseif type(event.Output) == "string" then
			-- Since Go 1.24 what the compiler says is an event, too.
			local package = tostring(event.Package or event.ImportPath)
			if event.Action == "build-output" then
				table.insert(plain, event.Output)
			else
				if said[package] == nil then
					said[package] = {}
					table.insert(order, package)
				end
				table.insert(said[package], event.Output)
			end
		end
	end
	for _, package in order do
		table.insert(plain, table.concat(said[package]))
	end
	return table.concat(plain)
end

--- Splits an output into its packages: each ends with a line that has its verdict.
local function read_packages(lines: { string }): { Package }
	local all: { Package } = {}
	local current: { string } = {}
	for _, line in lines do
		local verdict, name, remark = string.match(line, "^(%a+)%s+(%S+)%s+(.+)$")
		local rest = remark or ""
		local ends = (verdict == "ok" and (string.find(rest, "^[%d%.]+s") or string.find(rest, "^%(cached%)")))
			or (verdict == "FAIL" and (string.find(rest, "^[%d%.]+s") or string.find(rest, "^%[%a+ failed%]")))
		if ends and verdict ~= nil and name ~= nil then
			table.insert(all, { name = name, lines = current, remark = rest, verdict = verdict })
			current = {}
		else
			table.insert(current, line)
		end
	end
	if #current > 0 then
		table.insert(all, { name = "", lines = current, remark = "", verdict = "" })
	end
	return all
end

--- Returns the tests of a package with what each wrote. With -v what a test writes comes before its result, else behind it.
local function read_cases(lines: { string }): ({ Case }, { string })
	local cases: { Case }, by_name: { [string]: Case } = {}, {}
	local around: { string } = {}
	local current: string? = nil
	local function case(name: string): Case
		local known = by_name[name] or { name = name, status = "", said = {} } :: Case
		if by_name[name] == nil then
			by_name[name] = known
			table.insert(cases, known)
		end
		return known
	end
	for _, line in lines do
		local status, name, seconds = string.match(line, "^ *%-%-%- (%u+): (.-) %(([%d%.]+)s%)$")
		local running = string.match(line, "^=== %u+%s+(%S.*)$")
		if status ~= nil and name ~= nil then
			case(name).status = status
			case(name).duration_ms = report.to_milliseconds(seconds)
			current = name
		elseif running ~= nil then
			case(running)
			current = running
		elseif current ~= nil and line ~= "FAIL" and line ~= "PASS" and string.find(line, "^exit status ") == nil then
			table.insert(case(current :: string).said, line)
		else
			table.insert(around, line)
		end
	end
	return cases, around
end

--- One thing that a test said: `cart_test.go:13: Add(1, 2) = -1, want 3`.
type Remark = { file: string, line: number?, message: string }

local function read_remarks(rows: { string }): { Remark }
	local all: { Remark } = {}
	for _, row in rows do
		local file, line, message = string.match(row, "^%s*([^%s:]+%.go):(%d+): ?(.*)$")
		if file ~= nil and message ~= nil then
			table.insert(all, { file = file, line = tonumber(line), message = message })
		elseif #all > 0 and string.find(row, "^%s") and string.find(row, "^%s*panic: ") == nil then
			all[#all].message ..= "\n" .. text.trim(row)
		end
	end
	return all
end

--- Words that tell a complaint from what a test merely logs: the runner does not.
local COMPLAINTS = { "want", "got", "expect", "unexpected", "!=", "error", "fail", "should", "differ", "must" }

local function complaint(remarks: { Remark }): Remark?
	for _, remark in remarks do
		local low = string.lower(remark.message)
		for _, word in COMPLAINTS do
			if string.find(low, word, 1, true) then
				return remark
			end
		end
	end
	return remarks[#remarks]
end

local function sides(message: string): (string?, string?)
	local first = string.match(message, "^[^\n]*")
	local actual, expected = string.match(first or "", "got:? (.-)[,;] want:? (.+)$")
	if actual == nil then
		expected, actual = string.match(first or "", "want:? (.-)[,;] got:? (.+)$")
	end
	if actual == nil then
		actual, expected = string.match(first or "", "= (.-)[,;] want (.+)$")
	end
	if actual == nil then
		return report.expected_and_actual(message)
	end
	return expected, actual
end

--- Returns the failure of a test, from what it wrote.
local function describe(case: Case, package: string): report.RawFailure
	local block = table.concat(case.said, "\n")
	local panicked = string.match(block, "panic: ([^\n]+)")
	local remarks = read_remarks(case.said)
	local chosen = if panicked then nil else complaint(remarks)
	local stack: { report.Location } = if panicked then frames.go(block) else {}
	-- The test's own line: its base name alone, because tests run in the folder of their package.
	local own: report.Location? = nil
	for _, frame in stack do
		own = if string.find(frame.file, "_test%.go$") then frame else own
	end
	if chosen ~= nil then
		own = { file = chosen.file, line = chosen.line, partial = string.find(chosen.file, "/") == nil, package = package }
		local traced = string.match(block, "Error Trace:%s*(%S+%.go):%d+")
		local traced_line = string.match(block, "Error Trace:%s*%S+%.go:(%d+)")
		stack = if traced then { { file = traced, line = tonumber(traced_line) } } else { own :: report.Location }
	end
	local expected, actual = sides(if chosen then chosen.message else "")
	return {
		test_name = case.name,
		test_file = if own then own.file else nil,
		test_line = if own then own.line else nil,
		error_name = if panicked then "RuntimeError" else "AssertionError",
		error_message = if panicked then (string.gsub(panicked, " %[recovered.*$", "")) elseif chosen then chosen.message else block,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
		outcome = if panicked then "error" else "failed",
		duration_ms = case.duration_ms,
	}
end

--- Returns the goroutine of a package's end in which one of its tests was, as text; else all of it.
local function goroutine_of_test(said: string): string
	for part in string.gmatch(said .. "\n\n", "(goroutine .-)\n\n") do
		if string.find(part, "_test%.go:%d+") then
			return part
		end
	end
	return said
end

--- Adds a package that failed although none of its tests did: it was built wrong, timed out, or ended by itself.
local function add_package_failure(self: report.Report, package: Package, around: { string }, builds: { [string]: { string } })
	self.failed += 1
	self.errors += 1
	if string.find(package.remark, "^%[%a+ failed%]") then
		local errors = builds[package.name] or {}
		local file, line, message = string.match(errors[1] or "", "^(.-%.go):(%d+):%d*:? (.+)$")
		local rest = if #errors > 1 then "\n" .. table.concat(errors, "\n", 2) else ""
		report.add_failure(self, {
			test_name = `build {package.name}`,
			outcome = "error",
			error_message = if message then message .. rest else `{package.name} {package.remark}`,
			stack_trace = table.concat(errors, "\n"),
			frames = if file then { { file = (string.gsub(file, "^%./", "")), line = tonumber(line) } } else nil,
		})
		return
	end
	local said = text.trim(table.concat(around, "\n"))
	local panicked = string.match(said, "panic: ([^\n]+)")
	local timed_out = string.find(said, "panic: test timed out", 1, true) ~= nil
	-- Since Go 1.20 it is told which tests were running.
	local running = string.match(said, "running tests:\n%s*(.-) %(")
	report.add_failure(self, {
		test_name = running or `package {package.name}`,
		outcome = "error",
		error_type = if timed_out then "TimeoutError" elseif panicked then nil else "Other",
		error_name = if panicked then "RuntimeError" else nil,
		error_message = panicked or said,
		stack_trace = said,
		frames = frames.limited(frames.go(goroutine_of_test(said))),
	})
end

--- Returns what the compiler says, by package: `# PACKAGE`, and lines below that begin with a place.
local function read_build_errors(lines: { string }): { [string]: { string } }
	local all: { [string]: { string } } = {}
	local current: { string }? = nil
	for _, line in lines do
		local name = string.match(line, "^# (%S+)")
		if name ~= nil then
			all[name] = all[name] or {}
			current = all[name]
		elseif current ~= nil and (string.find(line, "^%S-%.go:%d+") or string.find(line, "^vet: ")) then
			table.insert(current, (string.gsub(line, "^vet: ", "")))
		elseif string.find(line, "^%s") == nil then
			current = nil
		end
	end
	return all
end

return function(given: string): report.Report?
	local output = from_json(given) or given
	local self = report.new("go test", "go")
	local lines = text.lines(output)
	local builds = read_build_errors(lines)
	local packages, known, empty = 0, false, 0
	for _, package in read_packages(lines) do
		local cases, around = read_cases(package.lines)
		local failing = {}
		for _, case in cases do
			if case.status == "FAIL" then
				table.insert(failing, case.name)
			end
		end
		local failed_here = 0
		for _, case in cases do
			local details = { duration_ms = case.duration_ms }
			known = known or case.status ~= ""
			if case.status == "PASS" then
				self.passed += 1
				report.add_pass(self, case.name, details)
			elseif case.status == "SKIP" then
				self.skipped += 1
				report.add_skip(self, case.name, details)
			elseif case.status == "FAIL" then
				-- A test fails with its subtests: it is counted for them, unless it complains itself.
				local by_subtest = false
				for _, other in failing do
					by_subtest = by_subtest or string.sub(other, 1, #case.name + 1) == case.name .. "/"
				end
				if not by_subtest or #read_remarks(case.said) > 0 then
					self.failed += 1
					local failure = describe(case, package.name)
					self.errors += if failure.outcome == "error" then 1 else 0
					report.add_failure(self, failure)
				end
				failed_here += 1
			end
		end
		if package.verdict == "ok" then
			packages += 1
			empty += if string.find(package.remark, "[no tests to run]", 1, true) then 1 else 0
		elseif package.verdict == "FAIL" then
			packages += if string.find(package.remark, "^%[") then 0 else 1
			if failed_here == 0 then
				known = true
				local said = table.clone(around)
				for _, case in cases do
					table.move(case.said, 1, #case.said, #said + 1, said)
				end
				add_package_failure(self, package, said, builds)
			end
		end
		local seconds = string.match(package.remark, "^([%d%.]+)s")
		if seconds ~= nil then
			self.duration_ms = (self.duration_ms or 0) + (report.to_milliseconds(seconds) or 0)
		end
	end
	if not known and packages == 0 then
		return nil
	end
	if not known then
		-- Without -v only packages are listed.
		self.passed = packages - empty
	end
	self.coverage_percent = tonumber(string.match(output, "coverage: ([%d%.]+)%%"))
	self.total = self.passed + self.failed + self.skipped
	self.unbuilt = packages == 0 and self.passed == 0 and self.failed == self.errors
	return self
end
