--!strict
--- The tools with which a model reads a worktree. They change nothing, so that a model may be offered them alone.

local failure = require("../failure")
local kit = require("./kit")
local searching = require("./searching")
local source = require("./source")

local reading = {}

--- How many entries of a tree are shown.
local MOST_ENTRIES = 400

--- Returns the folders and files below a folder, down to a depth; deeper folders with how many files they have.
local function render_tree(paths: { string }, top: string, depth: number): string
	local shown: { string } = {}
	local counts: { [string]: number } = {}
	for _, path in paths do
		local below = if top == "" then path else string.sub(path, #top + 2)
		local parts = string.split(below, "/")
		local name = if #parts <= depth then below else table.concat(parts, "/", 1, depth) .. "/"
		if counts[name] == nil then
			table.insert(shown, name)
		end
		counts[name] = (counts[name] or 0) + 1
	end
	local lines: { string } = {}
	for _, name in shown do
		if #lines == MOST_ENTRIES then
			table.insert(lines, `[{#shown - MOST_ENTRIES} more; ask for a folder, or for less depth]`)
			break
		end
		local inside = string.sub(name, -1) == "/"
		table.insert(lines, if inside then `{name} ({counts[name]} files)` else name)
	end
	return if #lines > 0 then table.concat(lines, "\n") else "(empty)"
end

reading.TOOLS = {
	searching.READ :: any,
	{
		name = "read_files",
		description = "Returns the lines of several files, each behind its number and a tab.",
		parameters = {
			type = "object",
			required = { "paths" },
			properties = { paths = { type = "array", items = { type = "string" }, minItems = 1, maxItems = 20 } },
		},
		writes = false,
		run = function(tree, arguments, seen)
			local parts = {}
			for _, path in arguments.paths do
				local ok, content = pcall(source.read_file, tree, path, seen)
				table.insert(
					parts,
					`=== {path}\n{if ok then searching.number_lines(content) else "error: " .. failure.of(content).message}`
				)
			end
			return source.shorten(table.concat(parts, "\n"))
		end,
	},
	{
		name = "list_folder",
		description = "Returns the entries of a folder; folders end with a slash.",
		parameters = {
			type = "object",
			required = { "path" },
			properties = { path = { type = "string", description = "The folder; `.` is the top" } },
		},
		writes = false,
		run = function(tree, arguments)
			local names = {}
			for _, entry in tree:list(source.normalize(arguments.path)).entries do
				table.insert(names, entry.name .. (if entry.kind == "folder" then "/" else ""))
			end
			return if #names > 0 then table.concat(names, "\n") else "(empty)"
		end,
	},
	{
		name = "list_tree",
		description = "Returns the files below a folder, down to a depth; what is deeper is counted.",
		parameters = {
			type = "object",
			properties = {
				path = { type = "string", description = "The folder; the top without it" },
				depth = { type = "integer", minimum = 1, maximum = 20, description = "3 without it" },
			},
		},
		writes = false,
		run = function(tree, arguments)
			local top = string.gsub(source.normalize(arguments.path or ""), "/+$", "")
			top = if top == "." then "" else top
			local found = tree:find(if top == "" then "**" else source.literal_glob(top) .. "/**")
			return render_tree(found.paths, top, arguments.depth or 3) .. (if found.cut then "\n[there are more]" else "")
		end,
	},
	searching.FIND :: any,
	searching.GREP :: any,
	{
		name = "diff",
		description = "Returns what you have changed so far, as a unified diff; of everything, or of one file or folder.",
		parameters = { type = "object", properties = { path = { type = "string" } } },
		writes = false,
		run = function(tree, arguments)
			local path = if arguments.path ~= nil then source.normalize(arguments.path) else nil
			local found = tree:diff(path)
			local more = if found.cut then "\n[cut here; ask for one file]" else ""
			return if found.patch ~= "" then source.shorten(found.patch) .. more else "(nothing has changed)"
		end,
	},
} :: { kit.Tool }

return reading
