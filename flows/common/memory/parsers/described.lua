--!strict
--- Reads the output of runners that are described in `../runners/*.yaml`: by the lines of their tests. A project adds its own.

local frames = require("./frames")
local nietz = require("@nietz")
local report = require("./report")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

--- How a line tells of a test; numbers are groups of its expression.
type Line = { line: string, name: number, file: number?, row: number?, message: number?, ["until"]: string? }
type Runner = { runtime: string?, known: string, passed: Line, failed: Line, skipped: Line? }

local described = {}

--- Fails where an expression of a file is none, before anything is run.
local function require_expressions(file: yaml.DataFile)
	local runner: Runner = file.value
	local patterns: { string } = { runner.known, runner.passed.line, runner.failed.line }
	for _, pattern in { if runner.skipped then runner.skipped.line else "", runner.failed["until"] or "" } do
		table.insert(patterns, pattern)
	end
	for _, pattern in patterns do
		local ok, why: any = pcall(text.search, "", pattern)
		if not ok then
			nietz.fail(`{file.file}: "{pattern}": {why.message or why}`, "it is a regular expression of Rust's `regex`: no look-around")
		end
	end
end

local function group(found: text.Found, index: number?): string?
	local value = if index then found.groups[index] else nil
	return if value == "" then nil else value
end

--- Returns the failure that a line tells of, with the lines below that belong to it.
local function read_failure(lines: { string }, at: number, found: text.Found, form: Line): report.RawFailure
	local ends = form["until"]
	local block = if ends
		then report.read_block(lines, at + 1, function(row): boolean
			return text.search(row, ends) ~= nil
		end)
		else ""
	local message = group(found, form.message) or ""
	local expected, actual = report.expected_and_actual(block)
	local stack = frames.any(message .. "\n" .. block)
	if #stack == 0 then
		stack = frames.plain(message .. "\n" .. block)
	end
	local file, row = group(found, form.file), tonumber(group(found, form.row))
	if file ~= nil and row ~= nil then
		table.insert(stack, { file = file, line = row })
	end
	local test: report.Location? = nil
	for _, frame in stack do
		test = if report.is_test(frame.file) then frame else test
	end
	return {
		test_name = group(found, form.name) or "",
		test_file = group(found, form.file) or (if test then test.file else nil),
		test_line = tonumber(group(found, form.row)) or (if test then test.line else nil),
		error_message = text.trim(message .. "\n" .. block),
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

local function parser(name: string, runner: Runner): (string) -> report.Report?
	return function(output: string): report.Report?
		if text.search(output, runner.known) == nil then
			return nil
		end
		local self = report.new(name, runner.runtime)
		local lines = text.lines(output)
		for at, line in lines do
			local failed = text.search(line, runner.failed.line)
			local passed = if failed then nil else text.search(line, runner.passed.line)
			if failed ~= nil then
				self.failed += 1
				report.add_failure(self, read_failure(lines, at, failed, runner.failed))
			elseif passed ~= nil then
				self.passed += 1
				report.add_pass(self, group(passed, runner.passed.name) or "")
			else
				local form = runner.skipped
				local skipped = if form then text.search(line, form.line) else nil
				if form ~= nil and skipped ~= nil then
					self.skipped += 1
					report.add_skip(self, group(skipped, form.name) or "")
				end
			end
		end
		self.total = self.passed + self.failed + self.skipped
		return self
	end
end

--- Returns a parser for each runner that is described, by name.
function described.parsers(): { (string) -> report.Report? }
	local all: { (string) -> report.Report? } = {}
	for _, file in yaml.load_all("../runners", { schema = "../runner.schema.json" }) do
		require_expressions(file)
		table.insert(all, parser(file.name, file.value))
	end
	return all
end

return described
