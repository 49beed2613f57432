--!strict
--- Shortens long stack traces for prompts: to the frames of the developer's own code, and those beside an error's message. The
--- session keeps what was typed.

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local stack_trace = {}

local FOREIGN: { string } = yaml.load("./files.yaml").foreign

--- How much of each end of a text is looked at for frames, in bytes.
local LOOKED_AT = 20_000
--- A trace with at most so many frames is not shortened.
local FEW_FRAMES = 5

--- What a frame looks like in the traces of Python, JavaScript, Java, Rust, Go, Ruby, C# and PHP.
local FRAME = table.concat({
	'^\\s*File "[^"]+", line [0-9]+',
	"^\\s*at .+",
	"^\\s*[0-9]+: +[\\w<{].*",
	"^\\s+/?[\\w./@~-]+\\.\\w+:[0-9]+",
	"^\\s*from .+:[0-9]+:in ",
	"^#[0-9]+ ",
	"^[\\w./*()]+\\(.*\\)$",
}, "|")

--- Whether a path, or a line that names one, belongs to other people's code.
function stack_trace.is_foreign(line: string): boolean
	return list.some(FOREIGN, function(place): boolean
		return string.find(line, place, 1, true) ~= nil
	end)
end

type Line = { text: string, frame: boolean, foreign: boolean }

--- Whether a line is the second half of a frame: the place below `File "…"` in Python or `N: function` in Rust.
local function is_second_half(line: string, before: Line?): boolean
	return before ~= nil and before.frame and string.match(line, "^%s%s") ~= nil
end

local function read_lines(value: string): ({ Line }, number)
	local lines: { Line } = {}
	local frames = 0
	for _, line in text.lines(value) do
		local before = lines[#lines]
		local frame = text.search(line, FRAME) ~= nil
		local second = not frame and is_second_half(line, before)
		if frame then
			frames += 1
		end
		local foreign = stack_trace.is_foreign(line)
		if second then
			-- Both halves are kept or left out together, whichever of them shows whose code it is.
			before.foreign = before.foreign or foreign
			foreign = before.foreign
		end
		table.insert(lines, { text = line, frame = frame or second, foreign = foreign })
	end
	return lines, frames
end

--- Whether a text has frames of a stack trace: at its beginning or its end, where it is long.
function stack_trace.has_frames(value: string): boolean
	local looked_at = if #value <= 2 * LOOKED_AT then value else string.sub(value, 1, LOOKED_AT) .. "\n" .. string.sub(value, -LOOKED_AT)
	return list.some(text.lines(looked_at), function(line): boolean
		return text.search(line, FRAME) ~= nil
	end)
end

--- Returns the text; where it has a long stack trace, without frames in other people's code.
function stack_trace.shorten(value: string): string
	if string.find(value, "\n", 1, true) == nil then
		return value
	end
	local lines, frames = read_lines(value)
	if frames <= FEW_FRAMES then
		return value
	end
	local out: { string } = {}
	local left_out = 0
	local function report_left_out()
		if left_out > 0 then
			table.insert(out, `    … {left_out} lines of frames in other people's code …`)
			left_out = 0
		end
	end
	for index, line in lines do
		local next_is_plain = lines[index + 1] == nil or not lines[index + 1].frame
		local edge = next_is_plain or index == 1 or not lines[index - 1].frame
		if line.frame and line.foreign and not edge then
			left_out += 1
		else
			report_left_out()
			table.insert(out, line.text)
		end
	end
	report_left_out()
	return table.concat(out, "\n")
end

return stack_trace
