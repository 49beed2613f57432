--!strict
--- Markdown with marks of where it comes from: behind what rests on something that was said stands its id (`[12]`, `[U7, P3]`). Its
--- units are what is checked: a sentence, an item of a list, a row of a table. The marks are taken out before anybody reads it, and
--- what could do more than be read is made harmless. Pure.

local ledger = require("./ledger")
local list = require("./list")
local memo = require("./memo")
local text = require("@nietz/text")

local marked = {}

--- One statement: its words without marks, what it cites, and as it stands in the Markdown, in the line `at`. A row has the head of
--- its table.
export type Unit = {
	text: string,
	cites: { string },
	raw: string,
	at: number,
	line: string,
	is_row: boolean,
	is_alone: boolean,
	head: { string }?,
}

--- Returns the ids between two brackets, or nil where anything else stands there.
local function ids_in(inner: string): { string }?
	local found: { string } = {}
	for token in string.gmatch(inner, "[^,;%s]+") do
		local id = string.match(token, "^#?([UP]?%d+)$")
		if id == nil then
			return nil
		end
		table.insert(found, id :: string)
	end
	return if #found > 0 then found else nil
end

--- Returns the next mark of a line: where it begins and ends, and its ids. A link is none.
local function next_mark(line: string, from: number): (number?, number?, { string }?)
	local start = from
	while true do
		local first, last, inner = string.find(line, "%[([#%dUP,;%s]+)%]", start)
		if first == nil or last == nil then
			return nil, nil, nil
		end
		local ids = ids_in(inner :: string)
		if ids ~= nil and string.sub(line, last + 1, last + 1) ~= "(" then
			return first, last, ids
		end
		start = first + 1
	end
end

--- What stands at the beginning of a line before its words.
local BEGINNINGS = { "^%s*[%-%*%+]%s+%[[ xX]%]%s*", "^%s*[%-%*%+]%s+", "^%s*%d+[%.%)]%s+", "^%s*>+%s*", "^%s+" }

--- Asterisks that end what is bold or in italics.
local CLOSES = "^%*+%f[%s%.,;:!%?%)|%z]"

--- Returns a line without its marks.
local function plain_line(line: string): string
	local out, from = "", 1
	while true do
		local first, last = next_mark(line, from)
		if first == nil or last == nil then
			return out .. string.sub(line, from)
		end
		out ..= string.sub(line, from, first - 1)
		from = last + 1
		local begins = string.find(out, "^%s*[|>%-%*%+%d%.%)]*%s*$") ~= nil
		if begins then
			from = (string.find(line, "%S", from) or #line + 1) :: number
		elseif string.find(string.sub(line, from, from), "[%w%(\"'“*]") == nil or string.find(string.sub(line, from), CLOSES) ~= nil then
			out = string.gsub(out, "%s+$", "")
			-- What is bold up to the mark, and behind it again, is bold.
			if string.sub(out, -2) == "**" and string.sub(line, from, from + 1) == "**" then
				out, from = string.sub(out, 1, -3), from + 2
			end
			out ..= if string.sub(line, from, from) == "|" then " " else ""
		end
	end
end

--- Returns Markdown without its marks.
function marked.plain(markdown: string): string
	return text.trim(table.concat(list.map(text.lines(markdown), plain_line), "\n"))
end

--- Returns the ids that Markdown cites, each once.
function marked.cites(markdown: string): { string }
	local found: { string } = {}
	local from = 1
	while true do
		local first, last, ids = next_mark(markdown, from)
		if first == nil or last == nil then
			return found
		end
		for _, id in ids :: { string } do
			if table.find(found, id) == nil then
				table.insert(found, id)
			end
		end
		from = last + 1
	end
end

local function is_row(line: string): boolean
	return string.find(line, "^%s*|") ~= nil
end

--- Whether a line parts the head of a table from its rows.
local function is_rule(line: string): boolean
	return string.find(line, "^%s*|?[%s:|%-]+|[%s:|%-]*$") ~= nil and string.find(line, "%-") ~= nil
end

--- Returns the cells of a row.
function marked.cells(line: string): { string }
	local inner = string.gsub(string.gsub(text.trim(line), "^|", ""), "|$", "")
	local kept = string.gsub(inner, "\\|", "\1")
	return list.map(string.split(kept, "|"), function(cell): string
		return text.trim((string.gsub(cell, "\1", "|")))
	end)
end

--- Returns a line in which a mark behind the end of a sentence stands within it.
local function marks_within(line: string): string
	return (string.gsub(line, "([%.!%?]+[%*_]*)%s+(%[[#%dUP,;%s]+%])", " %2%1"))
end

--- Returns the units of Markdown.
local function read_units(markdown: string): { Unit }
	local found: { Unit } = {}
	local lines = text.lines(markdown)
	local head: { string }? = nil
	for index, line in lines do
		local function add(raw: string, row: boolean, alone: boolean)
			local plain = if row then table.concat(marked.cells(plain_line(raw)), " · ") else plain_line(raw)
			local words = text.trim((string.gsub(plain, "%s+", " ")))
			if string.find(words, "%w") ~= nil then
				table.insert(found, {
					text = words,
					cites = marked.cites(raw),
					raw = raw,
					at = index,
					line = line,
					is_row = row,
					is_alone = alone,
					head = if row then head else nil,
				})
			end
		end
		if is_row(line) then
			if is_rule(lines[index + 1] or "") then
				head = marked.cells(plain_line(line))
			elseif not is_rule(line) then
				add(text.trim(line), true, false)
			end
		else
			head = nil
			local body, item = line, false
			for _, pattern in BEGINNINGS do
				local rest, count = string.gsub(body, pattern, "", 1)
				item = item or (count > 0 and pattern ~= "^%s+")
				body = rest
			end
			local sentences = ledger.sentences(marks_within(body))
			for _, sentence in sentences do
				add(sentence, false, not item and #sentences == 1)
			end
		end
	end
	return found
end

--- How many sections are kept as they were read.
local MOST_READ = 64

--- Returns the units of Markdown, in order; the heads of tables are none. They are read, not changed.
marked.units = memo.of(MOST_READ, read_units)

--- Returns the columns of the tables of Markdown, without their marks.
function marked.columns(markdown: string): { { string } }
	local found: { { string } } = {}
	local open: { { string } } = {}
	for _, line in text.lines(`{markdown}\n.`) do
		if not is_row(line) then
			table.move(open, 1, #open, #found + 1, found)
			open = {}
		elseif not is_rule(line) then
			for at, cell in marked.cells(plain_line(line)) do
				open[at] = open[at] or {}
				table.insert(open[at], cell)
			end
		end
	end
	return found
end

--- A part of Markdown: its heading, without its signs, and what stands below it. What stands before the first heading has none.
export type Part = { heading: string, body: string }

--- Returns Markdown by its headings of the first two levels; those within a fence are none.
function marked.parts(markdown: string): { Part }
	local found: { Part } = {}
	local heading = ""
	local lines: { string } = {}
	local fence: string? = nil
	local function close()
		local part: Part = { heading = heading, body = text.trim(table.concat(lines, "\n")) }
		if part.heading ~= "" or part.body ~= "" then
			table.insert(found, part)
		end
		lines = {}
	end
	for _, line in text.lines(markdown) do
		local mark = string.match(line, "^%s*(```+)") or string.match(line, "^%s*(~~~+)")
		if mark ~= nil and fence == nil then
			fence = mark
		elseif mark ~= nil and string.sub(mark :: string, 1, #(fence :: string)) == fence then
			fence = nil
		end
		local next = if fence == nil then string.match(line, "^##?%s+(.-)%s*#*%s*$") else nil
		if next ~= nil and string.find(next :: string, "%w") ~= nil then
			close()
			heading = next :: string
		else
			table.insert(lines, line)
		end
	end
	close()
	return found
end

--- Returns how many words Markdown has, as a reader counts them.
function marked.length(markdown: string): number
	local count = 0
	for word in string.gmatch(marked.plain(markdown), "%S+") do
		count += if string.find(word, "[%w\128-\255]") ~= nil then 1 else 0
	end
	return count
end

--- What stands in place of a unit; without `raw` it goes.
export type Edit = { unit: Unit, raw: string? }

--- Returns a line as its sentences stand in it.
local function as_read(line: string): string
	local indent, body = string.match(line, "^(%s*)(.-)%s*$")
	return (indent or "") .. marks_within((string.gsub(body or "", "%s+", " ")))
end

--- Returns what is left of a line where a unit of it goes; nil where that says nothing.
local function rest_of(before: string, behind: string): string?
	local bare = before .. behind
	for _, pattern in BEGINNINGS do
		bare = string.gsub(bare, pattern, "", 1)
	end
	return if string.find(bare, "%w") ~= nil then (string.gsub(before .. behind, "(%S)%s+", "%1 ")) else nil
end

--- Returns Markdown in which units of it are changed.
function marked.edited(markdown: string, edits: { Edit }): string
	local lines: { string? } = text.lines(markdown) :: any
	local count = #lines
	for _, edit in edits do
		local unit = edit.unit
		local line = lines[unit.at]
		if line == nil then
			continue
		end
		line = if unit.is_row then line else as_read(line)
		local first, last = string.find(line, unit.raw, 1, true)
		if first == nil or last == nil then
			continue
		end
		local before, behind = string.sub(line, 1, first - 1), string.sub(line, last + 1)
		if edit.raw ~= nil then
			lines[unit.at] = before .. edit.raw .. behind
		else
			lines[unit.at] = if unit.is_row then nil else rest_of(before, behind)
		end
	end
	local kept: { string } = {}
	for at = 1, count do
		if lines[at] ~= nil then
			table.insert(kept, lines[at] :: string)
		end
	end
	return table.concat(kept, "\n")
end

--- Returns a unit as it stands, with a mark behind it, or behind the cell of a row that has these words.
function marked.behind(unit: Unit, words: string, mark: string): string
	local raw = unit.raw
	local _, at = string.find(raw, words, 1, true)
	if unit.is_row and at ~= nil then
		local ends = string.find(raw, "%s*|", at) or #raw + 1
		return `{string.sub(raw, 1, ends - 1)} {mark}{string.sub(raw, ends)}`
	end
	local stop = string.match(raw, "[%.!%?…]*$") or ""
	return `{string.sub(raw, 1, #raw - #stop)} {mark}{stop}`
end

--- Returns what stands in Markdown with these figures in italics.
function marked.in_italics(raw: string, written: { string }): string
	local made = raw
	for _, figure in written do
		local escaped = string.gsub(figure, "%p", "%%%0")
		local whole = made
		made = string.gsub(
			whole,
			`()%f[%d]{escaped}%f[%D]()`,
			function(from: number, to: number): string
				local before, behind = string.sub(whole, 1, from - 1), string.sub(whole, to)
				-- It may be a piece of another figure, or a mark.
				local is_piece = string.find(before, "%d[%.,:]$") ~= nil or string.find(behind, "^[%.,:]%d") ~= nil
				local is_mark = string.find(before, "%[[%d,;%s]*$") ~= nil and string.find(behind, "^[%d,;%s]*%]") ~= nil
				return if is_piece or is_mark then figure else `*{figure}*`
			end :: any
		)
	end
	return made
end

--- Returns a piece of a line, which is no code, so that it can only be read.
local function inert_piece(piece: string): string
	local out = string.gsub(piece, "!%[([^%]]*)%]%(([^%)]*)%)", "%1")
	out = string.gsub(out, "%[([^%]]+)%]%(([^%)]*)%)", "%1 (%2)")
	out = string.gsub(out, "!%[", "[")
	return (string.gsub(out, "\\?<([%a/!%?])", "\\<%1"))
end

--- Returns a line so that it can only be read, with code in it as it is.
local function inert_line(line: string): string
	local parts = string.split(line, "`")
	for index, part in parts do
		if index % 2 == 1 or index == #parts then
			parts[index] = inert_piece(part)
		end
	end
	-- An open mark of code would take in what comes behind it.
	return table.concat(parts, "`") .. (if #parts % 2 == 0 then "`" else "")
end

--- Returns Markdown of somebody's as a section of a document: it loads nothing, leads nowhere, has no heading, and ends where it ends.
function marked.inert(markdown: string): string
	local found: { string } = {}
	local fence: string? = nil
	for _, raw in text.lines((string.gsub(markdown, "[%z\1-\8\11-\31\127]", ""))) do
		local mark = string.match(raw, "^%s*(```+)") or string.match(raw, "^%s*(~~~+)")
		if fence ~= nil then
			fence = if mark ~= nil and string.sub(mark :: string, 1, #fence) == fence then nil else fence
			table.insert(found, raw)
		elseif mark ~= nil then
			fence = mark
			table.insert(found, raw)
		else
			local heading = string.match(raw, "^%s*#+%s+(.-)%s*#*$")
			local line = if heading ~= nil then "**" .. string.gsub(heading, "%*", "") .. "**" else raw
			local is_bar = string.find(line, "^%s*[%-=_%*%s]+$") ~= nil and string.find(line, "[%-=_%*]") ~= nil
			local defines = string.find(line, "^%s*%[[^%]]+%]:%s") ~= nil
			if not is_bar then
				table.insert(found, inert_line(if defines then "\\" .. text.trim(line) else line))
			end
		end
	end
	if fence ~= nil then
		table.insert(found, fence)
	end
	return text.trim(table.concat(found, "\n"))
end

return marked
