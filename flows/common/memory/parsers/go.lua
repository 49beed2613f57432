--!strict
--- Reads the output of `go test`, with or without `-v`.

local report = require("./report")
local text = require("@nietz/text")

return function(output: string): report.Report?
	local self = report.new("go test", "go")
	local lines = text.lines(output)
	local packages, known, empty = 0, false, 0
	for at, line in lines do
		local indent, status, name = string.match(line, "^( *)%-%-%- (%u+): (.-) %([%d%.]+s%)$")
		if status ~= nil and name ~= nil then
			known = true
			-- A test with subtests is listed after them: a failure is counted for the subtest alone.
			local parent = lines[at + 1] ~= nil and string.find(lines[at + 1], `^{indent}    %-%-%- %u+: `) ~= nil
			if status == "PASS" then
				self.passed += 1
				table.insert(self.passes, name)
			elseif status == "SKIP" then
				self.skipped += 1
			elseif status == "FAIL" and not parent then
				self.failed += 1
				local block = report.read_block(lines, at + 1, function(row)
					return string.find(row, "^ *%-%-%- %u+: ") ~= nil
						or string.find(row, "^=== ") ~= nil
						or string.find(row, "^FAIL") ~= nil
						or string.find(row, "^ok ") ~= nil
						or row == "PASS"
				end)
				-- Without -v the output follows the result; with -v it precedes it.
				if text.trim(block) == "" or string.find(block, "_test%.go:%d+:") == nil then
					local from = at
					while
						from > 1
						and string.find(lines[from - 1], "^=== RUN") == nil
						and string.find(lines[from - 1], "^%-%-%- ") == nil
					do
						from -= 1
					end
					block = table.concat(lines, "\n", from, at - 1) .. "\n" .. block
				end
				local file, number, message = string.match(block, "([%w_%./%-]+_test%.go):(%d+): ([^\n]*)")
				local panicked = string.match(block, "panic: ([^\n]+)")
				self.errors += if panicked then 1 else 0
				-- The first frame that is neither a test's nor Go's own.
				local source: string?, source_line: string? = nil, nil
				for path, row in string.gmatch(block, "\n%s+(%S+%.go):(%d+)") do
					if source == nil and not report.is_test(path) and string.find(path, "/src/%l+/%l+%.go$") == nil then
						source, source_line = path, row
					end
				end
				local actual, expected = string.match(message or "", "got:? (.-)[,;] want:? (.+)$")
				if actual == nil then
					expected, actual = string.match(message or "", "want:? (.-)[,;] got:? (.+)$")
				end
				if actual == nil then
					actual, expected = string.match(message or "", "= (.-)[,;] want (.+)$")
				end
				report.add_failure(self, {
					test_name = name,
					test_file = file,
					test_line = tonumber(number),
					error_name = if panicked then "RuntimeError" else "AssertionError",
					error_message = panicked or message or block,
					stack_trace = block,
					expected = expected,
					actual = actual,
					source_location = if source then { file = source, line = tonumber(source_line) } else nil,
				})
			end
		end
		local verdict, package, remarks = string.match(line, "^(%a+)%s+(%S+)%s+(.+)$")
		local rest = remarks or ""
		if verdict == "ok" and (string.find(rest, "^[%d%.]+s") or string.find(rest, "^%(cached%)")) then
			packages += 1
			empty += if string.find(rest, "[no tests to run]", 1, true) then 1 else 0
			self.duration_ms = (self.duration_ms or 0) + (report.to_milliseconds(string.match(rest, "^([%d%.]+)s")) or 0)
			self.coverage_percent = self.coverage_percent or tonumber(string.match(rest, "coverage: ([%d%.]+)%%"))
		elseif verdict == "FAIL" and string.find(rest, "[build failed]", 1, true) then
			known = true
			self.failed += 1
			self.errors += 1
			local file, number, message = string.match(output, "\n%.?/?([^%s:]+%.go):(%d+):%d*:? ([^\n]+)")
			report.add_failure(self, {
				test_name = `build {package}`,
				error_message = message or line,
				stack_trace = output,
				source_location = if file then { file = file, line = tonumber(number) } else nil,
			})
		elseif verdict == "FAIL" and string.find(rest, "^[%d%.]+s") then
			packages += 1
			self.duration_ms = (self.duration_ms or 0) + (report.to_milliseconds(string.match(rest, "^([%d%.]+)s")) or 0)
		end
	end
	if not known and packages == 0 then
		return nil
	end
	if not known then
		-- Without -v only packages are listed.
		self.passed = packages - empty
	end
	self.total = self.passed + self.failed + self.skipped
	self.unbuilt = packages == 0 and self.passed == 0 and self.failed == self.errors
	return self
end
