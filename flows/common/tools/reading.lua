--!strict
--- The tools with which a model reads a worktree. They change nothing, so that a model may be offered them alone.

local failure = require("../failure")
local git = require("@nietz/git")
local kit = require("./kit")
local text = require("@nietz/text")

local reading = {}

--- The most lines of a search that are returned at once, and the most around each.
local MOST_LINES, MOST_CONTEXT = 200, 20
--- How many entries of a tree are shown.
local MOST_ENTRIES = 400

--- Returns lines with their numbers, and says which of how many they are where that is not all.
local function number_lines(value: string, from: number?, count: number?): string
	local lines = text.lines(value)
	local first = math.max(1, from or 1)
	if #lines == 0 then
		return "(empty)"
	elseif first > #lines then
		return `[it has {#lines} lines]`
	end
	local last = math.min(#lines, first + (count or #lines) - 1)
	local out, size = {}, 0
	for number = first, last do
		local line = `{number}\t{lines[number]}`
		size += #line + 1
		if size > kit.MOST_BYTES and #out > 0 then
			last = number - 1
			break
		end
		table.insert(out, kit.shorten(line))
	end
	if first > 1 or last < #lines then
		table.insert(out, `[lines {first} to {last} of {#lines}{if last < #lines then `; go on with from_line {last + 1}` else ""}]`)
	end
	return table.concat(out, "\n")
end

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

--- Returns what a search has found, as lines such as `path:12: text`, `path-13- text` for those beside.
local function render_found(found: git.Found, skip: number): string
	local lines: { string } = {}
	for _, file in found.files or ({} :: { { path: string, lines: number } }) do
		table.insert(lines, `{file.path}: {file.lines}`)
	end
	for _, line in found.lines do
		local mark = if line.beside then "-" else ":"
		table.insert(lines, `{line.path}{mark}{line.line}{mark} {line.text}`)
	end
	if found.cut then
		local matched = if found.files ~= nil then #found.files else 0
		for _, line in found.lines do
			matched += if line.beside then 0 else 1
		end
		table.insert(lines, `[there are more: go on with skip {skip + matched}]`)
	end
	return if #lines > 0 then kit.shorten(table.concat(lines, "\n")) else "(none)"
end

reading.TOOLS = {
	{
		name = "read_file",
		description = "Returns the lines of a file, each behind its number and a tab; with from_line and lines, a part of it.",
		parameters = {
			type = "object",
			required = { "path" },
			properties = {
				path = { type = "string", description = "Relative to the top of the repository" },
				from_line = { type = "integer", minimum = 1 },
				lines = { type = "integer", minimum = 1 },
			},
		},
		writes = false,
		run = function(tree, arguments, seen)
			return number_lines(kit.read_file(tree, arguments.path, seen), arguments.from_line, arguments.lines)
		end,
	},
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
				local ok, content = pcall(kit.read_file, tree, path, seen)
				table.insert(parts, `=== {path}\n{if ok then number_lines(content) else "error: " .. failure.of(content).message}`)
			end
			return kit.shorten(table.concat(parts, "\n"))
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
			for _, entry in tree:list(kit.normalize(arguments.path)).entries do
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
			local top = string.gsub(kit.normalize(arguments.path or ""), "/+$", "")
			top = if top == "." then "" else top
			local found = tree:find(if top == "" then "**" else kit.literal_glob(top) .. "/**")
			return render_tree(found.paths, top, arguments.depth or 3) .. (if found.cut then "\n[there are more]" else "")
		end,
	},
	{
		name = "find_files",
		description = "Returns the files whose paths match a glob, such as src/**/*.rs.",
		parameters = { type = "object", required = { "glob" }, properties = { glob = { type = "string" } } },
		writes = false,
		run = function(tree, arguments)
			local found = tree:find(arguments.glob)
			local more = if found.cut then "\n[there are more]" else ""
			return if #found.paths > 0 then kit.shorten(table.concat(found.paths, "\n")) .. more else "(none)"
		end,
	},
	{
		name = "grep",
		description = `Returns the lines that match a regular expression, as path:line: text, {MOST_LINES} at once.`,
		parameters = {
			type = "object",
			required = { "pattern" },
			properties = {
				pattern = { type = "string", description = "A regular expression without look-around" },
				glob = { type = "string", description = "Only in files whose paths match" },
				context = { type = "integer", minimum = 0, maximum = MOST_CONTEXT, description = "Lines around each" },
				skip = { type = "integer", minimum = 0, description = "How many matches to leave out, to see the next ones" },
				files_only = { type = "boolean", description = "The files, with how many lines match, in place of the lines" },
			},
		},
		writes = false,
		run = function(tree, arguments)
			local skip = arguments.skip or 0
			local found = tree:grep(arguments.pattern, arguments.glob, {
				skip = skip,
				context = arguments.context,
				by_file = arguments.files_only,
			})
			return render_found(found, skip)
		end,
	},
	{
		name = "diff",
		description = "Returns what you have changed so far, as a unified diff; of everything, or of one file or folder.",
		parameters = { type = "object", properties = { path = { type = "string" } } },
		writes = false,
		run = function(tree, arguments)
			local path = if arguments.path ~= nil then kit.normalize(arguments.path) else nil
			local found = tree:diff(path)
			local more = if found.cut then "\n[cut here; ask for one file]" else ""
			return if found.patch ~= "" then kit.shorten(found.patch) .. more else "(nothing has changed)"
		end,
	},
} :: { kit.Tool }

return reading
