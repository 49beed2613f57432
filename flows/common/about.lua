--!strict
--- What a project says about itself: files that the user names, read with the `files` permission, bounded, and with their lines
--- numbered, so that models cite `path:line` and hosts can check it. Knows no mode.

local cited = require("./cited")
local files = require("@nietz/files")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local text = require("@nietz/text")

local about = {}

--- What was read, and what was not: paths where nothing is, and files that no room was left for.
export type Reading = { files: { cited.Excerpt }, missing: { string }, left_out: { string } }

--- The least of a file that is worth its place, in tokens, and the most lines that are read of one.
local LEAST, MOST_LINES = 200, 4000
--- The most files of a folder that are looked at.
local MOST_FILES = 200

--- What tells most of a project comes first.
local FIRST = { "readme", "spec", "architecture", "design", "adr", "requirements", "contributing" }

local function rank(path: string): number
	local name = text.fold(string.match(path, "[^/]*$") or path)
	for index, word in FIRST do
		if string.find(name, word, 1, true) ~= nil then
			return index
		end
	end
	return #FIRST + 1 + select(2, string.gsub(path, "/", ""))
end

--- Returns the files that a path means: itself, or those below it where it is a folder, what tells most first.
function about.expand(path: string): { string }
	local plain = string.gsub(string.gsub(path, "^%./", ""), "/+$", "")
	if plain ~= "" and plain ~= "." then
		local ok, file = pcall(files.read_lines, plain, 1, 1)
		if ok and file ~= nil then
			return { plain }
		end
	end
	local found = files.find(if plain == "" or plain == "." then "**" else `{plain}/**`).paths
	local order: { [string]: number } = {}
	for index, one in found do
		order[one] = rank(one) * 100000 + index
	end
	table.sort(found, function(one: string, other: string): boolean
		return order[one] < order[other]
	end)
	local kept: { string } = {}
	for index, one in found do
		if index <= MOST_FILES then
			table.insert(kept, one)
		end
	end
	return kept
end

local function numbered(lines: { string }, room: number): (string, number)
	local out: { string } = {}
	local used = 0
	for index, line in lines do
		local shown = `{index}\t{text.truncate(line, 400)}`
		used += llm.count(shown) + 1
		if used > room and #out > 0 then
			break
		end
		table.insert(out, shown)
	end
	return table.concat(out, "\n"), #out
end

--- Reads what these paths mean, as far as `room` tokens go: each file gets an even share of what is left, at least a part worth
--- reading. Files that are no text are passed over.
function about.read(paths: { string }, room: number): Reading
	local reading: Reading = { files = {}, missing = json.array({}), left_out = json.array({}) }
	local wanted: { string } = {}
	for _, path in paths do
		local found = about.expand(path)
		if #found == 0 then
			table.insert(reading.missing, path)
		end
		for _, one in found do
			if table.find(wanted, one) == nil then
				table.insert(wanted, one)
			end
		end
	end
	local left = room
	for index, path in wanted do
		local share = math.max(LEAST, math.floor(left / math.min(#wanted - index + 1, 8)))
		if left < LEAST then
			table.insert(reading.left_out, path)
			continue
		end
		local ok, file = pcall(files.read_lines, path, 1, MOST_LINES)
		if not ok or file == nil then
			table.insert(reading.missing, path)
		elseif file.count > 0 and string.find(file.text, "%z") == nil then
			local shown, count = numbered(text.lines(file.text), math.min(share, left))
			left -= llm.count(shown)
			table.insert(
				reading.files,
				{ path = file.path, first = 1, last = count, lines = file.lines, sha256 = file.sha256, text = shown }
			)
		end
	end
	return reading
end

return about
