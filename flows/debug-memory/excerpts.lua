--!strict
--- Failures as models read them: message, values, places, and of the stack trace what goes through the project.

local list = require("../common/list")
local report = require("../common/memory/parsers/report")
local text = require("@nietz/text")

local excerpts = {}

--- A failure for a prompt: its heading, and lines below that.
export type Shown = { title: string, lines: { string } }

--- How many failures a model is shown, and how many lines of a trace: the first and the last ones.
local MAX_FAILURES, FIRST_LINES, LAST_LINES = 8, 6, 18
--- The longest line.
local MAX_LINE = 300

--- What stands in lines of a trace that lead through the runtime, the runner or a library.
local FOREIGN = {
	"node_modules/",
	"node:internal",
	"(node:",
	"site-packages/",
	"dist-packages/",
	"<frozen ",
	"/lib/python",
	"/rustc/",
	".cargo/registry/",
	".rustup/",
	"/usr/lib/",
	"/usr/local/",
	"/go/pkg/mod/",
	"org.junit.",
	"java.base/",
	"/gems/",
	"vendor/bundle/",
	"vendor/phpunit/",
}

local function is_foreign(line: string): boolean
	for _, part in FOREIGN do
		if string.find(line, part, 1, true) ~= nil then
			return true
		end
	end
	return false
end

--- Takes the message off the end of a trace, where the runtime writes it once more.
local function without_message(lines: { string }, message: string)
	local said = list.filter(text.lines(message), function(line)
		return string.find(line, "[^%s~%^]") ~= nil
	end)
	local before = #lines - #said
	if #said == 0 or before < 1 then
		return
	end
	for index, line in said do
		if text.trim(text.truncate(line, MAX_LINE)) ~= text.trim(lines[before + index]) then
			return
		end
	end
	for index = #lines, before + 1, -1 do
		lines[index] = nil
	end
end

--- Returns the lines of a stack trace without those that lead through what is not the project's, without the message, and without
--- its middle where it is long.
function excerpts.trace_lines(trace: string, message: string?): { string }
	local kept: { string } = {}
	local below_foreign = false
	for _, line in text.lines(trace) do
		if is_foreign(line) then
			-- Python shows the code of a frame below its place.
			below_foreign = string.find(line, "^%s*File ") ~= nil
		elseif below_foreign and string.find(line, "^%s%s%s%s") ~= nil then
			continue
		elseif string.find(line, "[^%s~%^]") ~= nil then
			-- (What only underlines the line above it is left out.)
			below_foreign = false
			table.insert(kept, text.truncate(line, MAX_LINE))
		end
	end
	without_message(kept, message or "")
	if #kept <= FIRST_LINES + LAST_LINES then
		return kept
	end
	local short = table.move(kept, 1, FIRST_LINES, 1, {})
	table.insert(short, `[{#kept - FIRST_LINES - LAST_LINES} lines are left out]`)
	return table.move(kept, #kept - LAST_LINES + 1, #kept, #short + 1, short)
end

local function place_text(file: string?, line: number?): string
	return if file == nil then "" elseif line == nil then file else `{file}:{line}`
end

--- Adds a text of one or more lines; those behind the first are set in.
local function add(lines: { string }, label: string, value: string?)
	if value == nil then
		return
	end
	for index, line in text.lines(value) do
		table.insert(lines, if index == 1 then label .. line else "  " .. line)
	end
end

--- Returns a failure with all that is known about it.
function excerpts.failure(failure: report.Failure): Shown
	local where = place_text(failure.test_file, failure.test_line)
	local lines: { string } = {}
	add(lines, "", failure.error_message)
	add(lines, "expected: ", failure.expected)
	add(lines, "actual: ", failure.actual)
	local source = failure.source_location
	if source ~= nil then
		local inside = if source["function"] then ` in {source["function"]}` else ""
		add(lines, "at ", place_text(source.file, source.line) .. inside)
	end
	local trace = excerpts.trace_lines(failure.stack_trace or "", failure.error_message)
	-- Many runners give the message as the whole trace.
	if #trace > 0 and string.find(failure.error_message, text.trim(table.concat(trace, "\n")), 1, true) == nil then
		table.insert(lines, "trace, as far as it goes through the project:")
		for _, line in trace do
			table.insert(lines, "  " .. line)
		end
	end
	return { title = failure.test_name .. (if where == "" then "" else ` ({where})`) .. `: {failure.error_type}`, lines = lines }
end

--- Returns the first failures for a prompt, and how many are left out.
function excerpts.failures(failures: { report.Failure }): ({ Shown }, number)
	local shown: { Shown } = {}
	for index = 1, math.min(MAX_FAILURES, #failures) do
		table.insert(shown, excerpts.failure(failures[index]))
	end
	return shown, #failures - #shown
end

--- Returns the lines of a file around one of them, with their numbers.
function excerpts.around(content: string, line: number?): { string }
	local lines = text.lines(content)
	local shown: { string } = {}
	local middle = line or 1
	for index = math.max(1, middle - 15), math.min(#lines, middle + 15) do
		table.insert(shown, `{index}: {text.truncate(lines[index], MAX_LINE)}`)
	end
	return shown
end

return excerpts
