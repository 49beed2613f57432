--!strict
--- Files of which prompts have lines, as a record keeps them, and the places in them that texts cite. Reads nothing itself, so that a
--- flow without the `files` permission can have it.

local json = require("@nietz/json")
local list = require("./list")
local text = require("@nietz/text")

local cited = {}

--- One file of which a prompt has lines.
export type Excerpt = { path: string, first: number, last: number, lines: number, sha256: string, text: string }

--- Returns what was read, as a record keeps it: without the texts.
function cited.record(files: { Excerpt }): { any }
	local found: { any } = json.array({})
	for _, file in files do
		table.insert(found, { path = file.path, first = file.first, last = file.last, lines = file.lines, sha256 = file.sha256 })
	end
	return found
end

--- Returns the places (`path:line`, `path:line-line`) that a text cites and that stand in what was read.
function cited.places(value: string, read: { { path: string, first: number, last: number } }): { string }
	local found: { string } = {}
	local from = 1
	while true do
		local hit = text.search(value, "([\\w./-]+):([0-9]+)(?:-([0-9]+))?", from)
		if hit == nil then
			return found
		end
		local path, line = hit.groups[1], tonumber(hit.groups[2]) or 0
		local known = list.some(read, function(file): boolean
			return file.path == path and line >= file.first and line <= file.last
		end)
		if known and table.find(found, hit.text) == nil then
			table.insert(found, hit.text)
		end
		from = hit.last + 1
	end
end

return cited
