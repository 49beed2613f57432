--!strict
--- What prompts show of a text: its lines with their true numbers; of a long one the beginning, the end, and the lines around those
--- that were named. No more of a text than that is held, so that a text may have any size.

local text = require("@nietz/text")

local excerpt = {}

--- A text that the developer showed.
export type Shown = {
	--- A file's path, or what else it is called.
	path: string,
	--- How questions name it: `src/price.py`, `traceback`. A line of it is `traceback:8`.
	name: string,
	--- What it is, where it is no file of theirs.
	what: string?,
	--- `code` for a file that was named in passing; else what kind of evidence it is.
	kind: string,
	--- The lines that are at hand, by their numbers.
	lines: { [number]: string },
	--- How many lines and bytes the whole has.
	count: number,
	bytes: number,
	--- The lines that were named.
	focus: { number },
	--- What prompts show of it, with numbers, and what is left out.
	excerpt: string,
	excerpt_note: string?,
	--- The same lines without numbers, which the developer has shown; and the number of each of them.
	text: string,
	numbers: { number },
}

--- A text with more bytes and more lines than these is long; so many lines of it are shown from the beginning and the end.
excerpt.LONG_BYTES, excerpt.LONG_LINES = 100_000, 500
excerpt.HEAD_LINES, excerpt.TAIL_LINES = 100, 400
--- How many lines are shown before and after one that was named.
excerpt.CONTEXT_LINES = 20
--- The longest line, in characters.
local LONGEST_LINE = 2000
--- What the number of a line takes, in bytes.
local NUMBER_BYTES = 8

local function clip(line: string): string
	return if #line > LONGEST_LINE then text.truncate(line, LONGEST_LINE) else line
end

--- Whether only parts of a text of this size are shown.
function excerpt.is_long(bytes: number, count: number): boolean
	return bytes > excerpt.LONG_BYTES and count > excerpt.LONG_LINES
end

--- Takes lines in, the first of which has this number.
function excerpt.add_lines(self: Shown, first: number, lines: { string })
	for index, line in lines do
		self.lines[first + index - 1] = clip(line)
	end
end

--- Returns a text of which no line is at hand yet.
function excerpt.new(path: string, kind: string, count: number, bytes: number): Shown
	return {
		path = path,
		name = path,
		what = nil,
		kind = kind,
		lines = {},
		count = count,
		bytes = bytes,
		focus = {},
		excerpt = "",
		text = "",
		numbers = {},
	}
end

--- Calls a function with each line of a text and its number, and returns how many there are. A list of all would take many times
--- the room of the text.
local function each_line(value: string, take: (number: number, line: string) -> ()): number
	local from, number = 1, 0
	while from <= #value do
		local stop = string.find(value, "\n", from, true)
		number += 1
		local line = string.sub(value, from, if stop then stop - 1 else #value)
		take(number, if string.sub(line, -1) == "\r" then string.sub(line, 1, -2) else line)
		from = (stop or #value) + 1
	end
	return number
end

--- Returns what is shown of a text: of a long one only the beginning and the end.
function excerpt.of_text(path: string, kind: string, value: string): Shown
	local self = excerpt.new(path, kind, 0, #value)
	local keeps_all = #value <= excerpt.LONG_BYTES
	self.count = each_line(value, function(number, line)
		self.lines[number] = clip(line)
		if not keeps_all and number > excerpt.LONG_LINES then
			-- Only the beginning and the last lines so far are held.
			local old = number - excerpt.TAIL_LINES
			if old > excerpt.HEAD_LINES then
				self.lines[old] = nil
			end
		end
	end)
	return self
end

--- Returns how many bytes a text takes in a prompt when all is shown that may be.
function excerpt.size(self: Shown): number
	local bytes = 0
	for _, line in self.lines do
		bytes += #line + NUMBER_BYTES
	end
	return bytes
end

--- Returns which lines fit into about so many bytes, by their numbers.
local function choose_lines(self: Shown, bytes: number): { [number]: boolean }
	local count, size, held = self.count, excerpt.size(self), 0
	for _ in self.lines do
		held += 1
	end
	local keep: { [number]: boolean } = {}
	local function add(first: number, last: number)
		for number = math.max(first, 1), math.min(last, count) do
			if self.lines[number] ~= nil then
				keep[number] = true
			end
		end
	end
	if size <= bytes then
		for number in self.lines do
			keep[number] = true
		end
		return keep
	end
	-- A model with a small window gets less of it, in the same proportion.
	local room = math.floor(bytes / math.max(size / math.max(held, 1), NUMBER_BYTES))
	local head, tail = excerpt.HEAD_LINES, excerpt.TAIL_LINES
	if room < head + tail then
		head, tail = math.max(math.floor(room * 0.2), 1), math.max(math.floor(room * 0.8), 1)
		if #self.focus > 0 then
			tail = math.max(tail - #self.focus * (2 * excerpt.CONTEXT_LINES + 1), 1)
		end
	end
	add(1, head)
	add(count - tail + 1, count)
	for _, line in self.focus do
		add(line - excerpt.CONTEXT_LINES, line + excerpt.CONTEXT_LINES)
	end
	return keep
end

--- Makes what prompts show of a text anew, at most about `bytes` long.
function excerpt.update(self: Shown, bytes: number)
	local keep = choose_lines(self, bytes)
	local numbered: { string }, plain: { string } = {}, {}
	local numbers: { number } = {}
	for number in keep do
		table.insert(numbers, number)
	end
	table.sort(numbers)
	local next_number = 1
	local function leave_out(last: number)
		if last >= next_number then
			table.insert(numbered, `       … lines {next_number} to {last} are left out …`)
		end
	end
	for _, number in numbers do
		leave_out(number - 1)
		table.insert(numbered, `{string.format("%5d", number)}  {self.lines[number]}`)
		table.insert(plain, self.lines[number])
		next_number = number + 1
	end
	leave_out(self.count)
	local left = self.count - #numbers
	self.numbers = numbers
	self.excerpt, self.text = table.concat(numbered, "\n"), table.concat(plain, "\n")
	self.excerpt_note = if left > 0 then `{self.count} lines, {left} of them left out` else nil
end

--- Makes what prompts show of all texts anew, within so many bytes: the newest comes first, short ones are shown whole, and the
--- others share what is left.
function excerpt.update_all(all: { Shown }, room: number)
	local sizes: { { shown: Shown, size: number } } = {}
	for index, shown in all do
		local size = excerpt.size(shown)
		if index == #all then
			-- The one that was shown last gets most.
			local own = if #all == 1 then room else math.min(size, room * 0.6)
			excerpt.update(shown, own)
			room -= math.min(size, own)
		else
			table.insert(sizes, { shown = shown, size = size })
		end
	end
	table.sort(sizes, function(a, b): boolean
		return a.size < b.size
	end)
	for index, one in sizes do
		local own = math.min(one.size, room / (#sizes - index + 1))
		excerpt.update(one.shown, own)
		room -= own
	end
end

return excerpt
