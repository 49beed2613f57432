--!strict
--- Stack traces: of a long one only the frames that matter are told on, those of the developer's own code and those
--- around an error's message. What was typed stays in the session as it was.

local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local trace = {}

local FOREIGN: { string } = yaml.load("./files.yaml").foreign

--- So many frames are no long trace.
local FEW = 5

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

local function is_foreign(line: string): boolean
	return list.some(FOREIGN, function(place): boolean
		return string.find(line, place, 1, true) ~= nil
	end)
end

type Line = { text: string, frame: boolean, foreign: boolean }

--- Whether a line is the second half of a frame: the place below `File "…"` in Python or `N: function` in Rust.
local function follows(line: string, before: Line?): boolean
	return before ~= nil and before.frame and string.match(line, "^%s%s") ~= nil
end

local function read(value: string): ({ Line }, number)
	local lines: { Line } = {}
	local frames = 0
	for _, line in text.lines(value) do
		local before = lines[#lines]
		local frame = text.search(line, FRAME) ~= nil
		local second = not frame and follows(line, before)
		if frame then
			frames += 1
		end
		local foreign = is_foreign(line)
		if second then
			-- Both halves stay or go together, whichever of them says whose it is.
			before.foreign = before.foreign or foreign
			foreign = before.foreign
		end
		table.insert(lines, { text = line, frame = frame or second, foreign = foreign })
	end
	return lines, frames
end

--- Whether a path belongs to somebody else's code.
function trace.is_foreign(path: string): boolean
	return is_foreign(path)
end

--- Returns the text with the frames of others left out, where it holds a stack trace that is long.
function trace.reduce(value: string): string
	if string.find(value, "\n", 1, true) == nil then
		return value
	end
	local lines, frames = read(value)
	if frames <= FEW then
		return value
	end
	local out: { string } = {}
	local left = 0
	local function told()
		if left > 0 then
			table.insert(out, `    … {left} lines of frames in other people's code …`)
			left = 0
		end
	end
	for index, line in lines do
		local next_is_plain = lines[index + 1] == nil or not lines[index + 1].frame
		local edge = next_is_plain or index == 1 or not lines[index - 1].frame
		if line.frame and line.foreign and not edge then
			left += 1
		else
			told()
			table.insert(out, line.text)
		end
	end
	told()
	return table.concat(out, "\n")
end

return trace
