--!strict
--- Reads the output of pytest, however much of it there is: quiet or verbose, any style of traceback, one process or many.

local frames = require("./frames")
local report = require("./report")
local text = require("@nietz/text")

--- What a section or a summary line tells of one failure.
type Section = { name: string, block: string, used: boolean }

--- What stands behind a test's name with -v, and in the short summary.
local OUTCOMES = {
	PASSED = "passed",
	XPASS = "passed",
	FAILED = "failed",
	ERROR = "error",
	SKIPPED = "skipped",
	-- An expected failure counts as skipped: it proves nothing about what the test is for.
	XFAIL = "skipped",
} :: { [string]: string }

--- The letters of the progress line, by what is counted.
local LETTERS = { ["."] = "passed", X = "passed", F = "failed", u = "failed", E = "error", s = "skipped", x = "skipped" } :: {
	[string]: string,
}

--- Returns the last line that sums up, as `3 passed, 1 failed in 0.07s`.
local function find_summary(lines: { string }): string?
	for index = #lines, 1, -1 do
		local line = lines[index]
		local counts = string.match(line, "^=* ?(%d+ %a+.-) in [%d%.]+s") or string.match(line, "^=* ?(no tests ran) in [%d%.]+s")
		for _, word in { "passed", "failed", "error", "skipped", "no tests ran", "xfail", "deselected" } do
			if counts ~= nil and string.find(counts, word, 1, true) then
				return line
			end
		end
	end
	return nil
end

--- Counts from the letters of the progress, which is all that -qq writes of tests that passed; nil where there are none.
local function count_letters(lines: { string }): { [string]: number }?
	local counts: { [string]: number } = {}
	local complete = false
	for _, line in lines do
		local letters = string.match(line, "^([%.FEsxXu,]+)%s+%[ *%d+%%%]$")
		for letter in string.gmatch(letters or "", ".") do
			local outcome = LETTERS[letter]
			if outcome ~= nil then
				counts[outcome] = (counts[outcome] or 0) + 1
			end
		end
		complete = complete or (letters ~= nil and string.find(line, "%[100%%%]$") ~= nil)
	end
	return if complete then counts else nil
end

--- Returns a test's id and its outcome from a line that -v writes, with or without workers.
local function read_verbose(line: string): (string?, string?)
	local worker_word, worker_id = string.match(line, "^%[gw%d+%][%s%[%d%%%]]* (%u+) (%S.-)%s*$")
	if worker_word ~= nil and OUTCOMES[worker_word] then
		return worker_id, OUTCOMES[worker_word]
	end
	local test, part = string.match(line, "^(%S.-::.-) SUBFAILED(.-)%s*%[ *%d+%%%]$")
	if test ~= nil and part ~= nil then
		return `{test} {text.trim(part)}`, "failed"
	end
	local from = string.find(line, "::", 1, true)
	while from ~= nil do
		local first, last, word = string.find(line, " (%u+)", from)
		if first == nil or word == nil then
			return nil, nil
		end
		local rest = string.sub(line, (last :: number) + 1)
		if
			OUTCOMES[word]
			and (string.find(rest, "^%s*$") or string.find(rest, "^%s+%[ *%d+%%%]$") or string.find(rest, "^ %(.*%)%s*%[ *%d+%%%]$"))
		then
			return string.sub(line, 1, (first :: number) - 1), OUTCOMES[word]
		end
		from = (last :: number) + 1
	end
	return nil, nil
end

--- Returns the sections of failures and of errors, by their headings.
local function read_sections(lines: { string }): ({ Section }, { Section })
	local failures: { Section } = {}
	local errors: { Section } = {}
	for at, line in lines do
		local name = string.match(line, "^_+ (.-) _+$")
		-- A line of single underscores stands between frames.
		if name ~= nil and string.find(name, "^_[_ ]*$") == nil then
			local block = report.read_block(lines, at + 1, function(row)
				return string.find(row, "^__+ .- __+$") ~= nil or string.find(row, "^==+ .- ==+$") ~= nil
			end)
			local failed = string.match(name, "^ERROR at %a+ of (.+)$") or string.match(name, "^ERROR collecting (.+)$")
			table.insert(if failed then errors else failures, { name = failed or name, block = block, used = false })
		end
	end
	return failures, errors
end

--- Returns the section of a test: the first of its name that is not used, if possible one that names its file.
local function take_section(sections: { Section }, names: { string }, file: string): Section?
	local best: Section? = nil
	for _, name in names do
		for _, section in sections do
			if not section.used and section.name == name then
				if string.find(section.block, file, 1, true) then
					section.used = true
					return section
				end
				best = best or section
			end
		end
	end
	if best ~= nil then
		best.used = true
	end
	return best
end

--- Splits `ID - MESSAGE` where both may contain ` - `: an id's brackets are closed.
local function split_id(said: string, sections: { Section }): (string, string?)
	local from = 1
	local first: number? = nil
	while true do
		local at = string.find(said, " - ", from, true)
		if at == nil then
			break
		end
		local id = string.sub(said, 1, at - 1)
		local name = string.gsub(string.match(id, "::(.+)$") or id, "::", ".")
		for _, section in sections do
			if section.name == name then
				return id, string.sub(said, at + 3)
			end
		end
		local _, opened = string.gsub(id, "%[", "")
		local _, closed = string.gsub(id, "%]", "")
		first = first or (if opened == closed then at else nil)
		from = at + 1
	end
	if first ~= nil then
		return string.sub(said, 1, first - 1), string.sub(said, first + 3)
	end
	return said, nil
end

--- Returns what pytest marks as the error in a section: the lines that begin with E, of the last exception of a chain.
local function read_message(block: string): string?
	local kept: { string } = {}
	local indent = 1
	for _, row in text.lines(block) do
		if string.find(row, "^The above exception was") or string.find(row, "^During handling of the above") then
			kept = {}
		end
		local lead, rest = string.match(row, "^E(%s+)(.*)$")
		if lead ~= nil and rest ~= nil then
			indent = if #kept == 0 then #lead else indent
			table.insert(kept, string.rep(" ", math.max(0, #lead - indent)) .. rest)
		end
	end
	return if #kept > 0 then table.concat(kept, "\n") else nil
end

--- With --tb=line a failure is one line, `PATH:LINE: MESSAGE`: returns the first that begins as the summary's message does.
local function take_line(rows: { Section }, said: string?): (report.Location?, string?)
	local wanted = string.gsub(said or "", "%.%.%.$", "")
	for _, row in rows do
		if wanted ~= "" and not row.used and string.sub(row.block, 1, #wanted) == wanted then
			row.used = true
			local file, line = string.match(row.name, "^(.+):(%d+)$")
			return if file then { file = file, line = tonumber(line) } else nil, row.block
		end
	end
	return nil, nil
end

local function ends_in(path: string, file: string): boolean
	return path == file or string.sub(path, -#file - 1) == "/" .. file or string.sub(file, -#path - 1) == "/" .. path
end

--- Returns a failure as its section and its line of the summary tell it.
local function describe(id: string, file: string?, section: Section?, said: string?, at: report.Location?): report.RawFailure
	-- What a test wrote stands below, and may look like anything.
	local block = if section then (string.gsub("\n" .. section.block, "\n%-%-+ Captured .*$", "")) else ""
	local stack = frames.python(block)
	if #stack == 0 and at ~= nil then
		stack = { at }
	end
	local message = read_message(block) or said or text.trim(block)
	-- The summary cuts what is long; Python's own tracebacks (--tb=native) end with the whole of it.
	local cut = string.match(message, "^(.+)%.%.%.$")
	local whole = if cut then string.find(block, "\n" .. cut, 1, true) else nil
	message = if whole then text.trim(string.sub(block, whole)) else message
	local error_name = string.match(block, "\n[^\n%s][^\n]-:%d+: ([%a_][%w_%.]*)%s*$")
		or string.match(message, "^([%a_][%w_%.]*): ")
		or string.match(message, "\n([%a_][%w_%.]*Error): ")
	local expected, actual = report.expected_and_actual(message)
	local test_line: number? = nil
	for _, frame in stack do
		test_line = if file ~= nil and ends_in(frame.file, file) then frame.line else test_line
	end
	return {
		test_name = id,
		test_file = file,
		test_line = test_line,
		error_name = error_name,
		error_type = if string.find(message, "^assert ")
				or error_name == "Failed"
				or string.find(message, "^%[XPASS%(strict%)%]")
			then "AssertionError"
			else nil,
		error_message = message,
		stack_trace = block,
		expected = expected,
		actual = actual,
		frames = frames.limited(stack),
	}
end

--- Adds the failures that the short summary names, then those that only have a section.
local function add_failures(self: report.Report, lines: { string }, durations: { [string]: number }): { [string]: boolean }
	local failures, errors = read_sections(lines)
	local rows: { Section } = {}
	for _, line in lines do
		local place, message = string.match(line, "^(/[^%s].-:%d+): (.+)$")
		if place ~= nil and message ~= nil then
			table.insert(rows, { name = place, block = message, used = false })
		end
	end
	local seen: { [string]: boolean } = {}
	for _, line in lines do
		local kind, rest = string.match(line, "^(%u+) (%S.*)$")
		local part: string? = nil
		if kind == nil then
			part, rest = string.match(line, "^SUBFAILED?(.-) ?(%S+%.py::.*)$")
			-- As the plugin wrote it before pytest 9: `[NAME] (KEY=VALUE) SUBFAIL ID`.
			if part == nil then
				part, rest = string.match(line, "^([%[%(].-) SUBFAIL (.+)$")
			end
			kind = if part then "FAILED" else nil
		elseif kind == "SUBFAIL" or kind == "SUBFAILED" then
			local description, id = string.match(rest :: string, "^(%(.-%)) (%S+::.*)$")
			part, rest, kind = description or "", id or rest, "FAILED"
		end
		if (kind == "FAILED" or kind == "ERROR") and rest ~= nil and (string.find(rest, "::", 1, true) or string.find(rest, "%.py")) then
			local id, said = split_id(rest, if kind == "ERROR" then errors else failures)
			local file = string.match(id, "^(.-)::") or id
			local name = string.gsub(string.match(id, "::(.+)$") or id, "::", ".")
			local described = if part ~= nil and part ~= "" then `{name} {text.trim(part)}` else name
			local section = take_section(if kind == "ERROR" then errors else failures, { described, name }, file)
			local full = if part ~= nil and part ~= "" then `{id} {text.trim(part)}` else id
			local at, whole = take_line(rows, said)
			local failure = describe(full, file, section, whole or said, at)
			failure.outcome = if kind == "ERROR" then "error" else "failed"
			failure.duration_ms = durations[id]
			seen[id] = true
			seen[full] = true
			report.add_failure(self, failure)
		end
	end
	for _, kind in { failures, errors } do
		for _, section in kind do
			if not section.used and not next(seen) then
				local stack = frames.python(section.block)
				local outermost = stack[#stack]
				local failure = describe(section.name, if outermost then outermost.file else nil, section, nil, nil)
				failure.outcome = if kind == errors then "error" else "failed"
				report.add_failure(self, failure)
			end
		end
	end
	return seen
end

return function(output: string): report.Report?
	local lines = text.lines(output)
	local summary = find_summary(lines)
	local letters = if summary == nil then count_letters(lines) else nil
	local short = string.find(output, "\n=+ short test summary info =+\n") ~= nil
	if summary == nil and letters == nil and not short then
		return nil
	end
	local self = report.new("pytest", "python")
	self.runtime_version, self.framework_version = string.match(output, "Python (%d[%d%.]*)[^\n]*, pytest%-(%d[%w%.]*)")
	self.root = string.match(output, "\nrootdir: ([^\n,]+)")
	local durations: { [string]: number } = {}
	local outcomes: { { id: string, outcome: string } } = {}
	for _, line in lines do
		local seconds, called = string.match(line, "^([%d%.]+)s call%s+(%S.*)$")
		if called ~= nil then
			durations[called] = report.to_milliseconds(seconds) or 0
		end
		local id, outcome = read_verbose(line)
		if id ~= nil and outcome ~= nil then
			table.insert(outcomes, { id = id, outcome = outcome })
		end
	end
	if #outcomes == 0 then
		-- -rA names them in the summary alone.
		for _, line in lines do
			local word, rest = string.match(line, "^(%u+) (%S+::.+)$")
			local outcome = OUTCOMES[word or ""]
			if outcome == "passed" or outcome == "skipped" then
				local named = rest :: string
				table.insert(outcomes, { id = if word == "PASSED" then named else (split_id(named, {})), outcome = outcome :: string })
			end
		end
	end
	local failed = add_failures(self, lines, durations)
	for _, told in outcomes do
		local details = { file = string.match(told.id, "^(.-)::"), duration_ms = durations[told.id] }
		if told.outcome == "skipped" then
			report.add_skip(self, told.id, details)
		elseif failed[told.id] then
			continue
		elseif told.outcome == "passed" then
			report.add_pass(self, told.id, details)
		else
			report.add_failure(self, { test_name = told.id, test_file = details.file, outcome = told.outcome })
			failed[told.id] = true
		end
	end
	if summary ~= nil then
		self.errors = report.number_before(summary, "error")
		self.passed = report.number_before(summary, "passed") + report.number_before(summary, "xpassed")
		self.failed = report.number_before(summary, "failed") + self.errors
		self.skipped = report.number_before(summary, "skipped") + report.number_before(summary, "xfailed")
		self.duration_ms = report.to_milliseconds(string.match(summary, "in ([%d%.]+)s"))
	else
		local counts: { [string]: number } = letters or {}
		for _, test in self.tests do
			self.errors += if test.outcome == "error" then 1 else 0
		end
		-- What failed is named below, and its letters are more than one for a test with subtests.
		self.failed = if short then #self.failures else (counts.failed or 0) + (counts.error or 0)
		self.passed, self.skipped = counts.passed or 0, counts.skipped or 0
	end
	self.total = self.passed + self.failed + self.skipped
	self.coverage_percent = tonumber(string.match(output, "\nTOTAL%s.-(%d+%.?%d*)%%"))
	return self
end
