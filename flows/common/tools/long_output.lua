--!strict
--- Long outputs of commands, as a model is shown them: the beginning, the end, and the lines between that tell of errors; and
--- any part of the rest when it asks.

local source = require("./source")
local text = require("@nietz/text")

local long_output = {}

--- How much of an output is kept for a model to read on in, in bytes; a file of the run has the whole of a longer one.
long_output.MOST_KEPT = 1000000
--- The longest output that is shown whole, and how much of the beginning, of the end and of the lines that tell of errors is shown
--- of a longer one.
local WHOLE, HEAD, TAIL, ERRORS = 24000, 5000, 13000, 4000
--- The longest line, in letters.
local MOST_LINE = 1000
--- How many lines are returned at once.
local MOST_LINES = 300
--- What stands in lines that tell of errors, in small letters.
local SIGNS = { "error", "fail", "panicked", "exception", "traceback", "assert", "undefined", "fatal", "not found", "cannot " }

local function clip(line: string): string
	return if #line > MOST_LINE then text.truncate(line, MOST_LINE) else line
end

local function tells_of_error(line: string): boolean
	local small = string.lower(line)
	for _, sign in SIGNS do
		if string.find(small, sign, 1, true) ~= nil then
			return true
		end
	end
	return false
end

--- Returns the lines of an output that is too long, and what is shown of it in its place; no lines where it is shown whole.
function long_output.show(output: string, number: number): ({ string }?, string)
	if #output <= WHOLE then
		return nil, output
	end
	local lines = text.lines(output)
	local shown, size, first = {}, 0, 1
	while first <= #lines and size + #clip(lines[first]) < HEAD do
		size += #clip(lines[first]) + 1
		table.insert(shown, clip(lines[first]))
		first += 1
	end
	local last: number = #lines
	size = 0
	while last >= first and size + #clip(lines[last]) < TAIL do
		size += #clip(lines[last]) + 1
		last -= 1
	end
	if last >= first then
		local errors: { string } = {}
		local left_out
		size, left_out = 0, 0
		for index = first, last do
			if not tells_of_error(lines[index]) then
				continue
			end
			local line = `{index}\t{clip(lines[index])}`
			if size + #line > ERRORS then
				left_out += 1
			else
				size += #line + 1
				table.insert(errors, line)
			end
		end
		table.insert(shown, `[lines {first} to {last} of {#lines} are left out; read_output shows them, as output {number}]`)
		if #errors > 0 then
			local more = if left_out > 0 then `, and {left_out} more` else ""
			table.insert(shown, `[these of them tell of errors{more}:]`)
			table.move(errors, 1, #errors, #shown + 1, shown)
			table.insert(shown, `[the end, from line {last + 1}:]`)
		end
	end
	for index = last + 1, #lines do
		table.insert(shown, clip(lines[index]))
	end
	return lines, table.concat(shown, "\n")
end

--- Returns a part of an output, or its lines that match, with their numbers.
function long_output.page(lines: { string }, arguments: source.Arguments): string
	local from, most = arguments.from_line or 1, math.min(arguments.lines or MOST_LINES, MOST_LINES)
	if from > #lines then
		return `[it has {#lines} lines]`
	end
	local shown: { string } = {}
	local size = 0
	for index = from, #lines do
		if arguments.pattern ~= nil and text.search(lines[index], arguments.pattern) == nil then
			continue
		end
		local line = `{index}\t{source.shorten(lines[index])}`
		if #shown == most or #shown > 0 and size + #line > source.MOST_BYTES then
			table.insert(shown, `[there are more of {#lines} lines: go on with from_line {index}]`)
			break
		end
		size += #line + 1
		table.insert(shown, line)
	end
	return if #shown > 0 then table.concat(shown, "\n") else "(none)"
end

return long_output
