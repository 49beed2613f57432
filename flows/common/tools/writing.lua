--!strict
--- The tools with which a model changes a worktree.

local failure = require("../failure")
local git = require("@nietz/git")
local kit = require("./kit")
local source = require("./source")
local text = require("@nietz/text")

local writing = {}

--- How many files or places one call changes.
local MOST_FILES, MOST_EDITS = 50, 100

--- Writes a whole file, and says how much of an old one is gone: models forget that they replace it. A file that the model
--- has not read is not replaced.
local function write_file(tree: git.Handle, path: string, content: string, seen: kit.Seen): string
	local there, before = pcall(tree.read, tree, path)
	if there and before ~= "" and not seen[source.normalize(path)] then
		error(`{path} is there already, and you have not read it: read it first, or change a part with replace_in_file`, 0)
	end
	tree:write(path, content)
	seen[source.normalize(path)] = true
	if not there or before == "" or before == content then
		return "written"
	end
	return `written: {#text.lines(content)} lines, in the place of all {#text.lines(before)} that were there`
end

--- Returns how often a text stands in another, and that other text with `new` in each place.
local function replace_each(value: string, old: string, new: string): (string, number)
	local parts: { string } = {}
	local from, count = 1, 0
	while true do
		local first, last = string.find(value, old, from, true)
		if first == nil or last == nil then
			break
		end
		table.insert(parts, string.sub(value, from, first - 1))
		from, count = last + 1, count + 1
	end
	table.insert(parts, string.sub(value, from))
	return table.concat(parts, new), count
end

--- Replaces a text in a file: the only one, or with `all` each.
local function replace(tree: git.Handle, path: string, old: string, new: string, all: boolean?): string
	if not all then
		return `replaced in line {tree:replace(path, old, new)}`
	end
	local after, count = replace_each(tree:read(path), old, new)
	if count == 0 then
		error(`{path} does not have that text: read it again, spaces and line ends count`, 0)
	end
	tree:write(path, after)
	return `replaced in {count} places`
end

--- Puts lines into a file behind a line; 0 is before the first.
local function insert(tree: git.Handle, path: string, line: number, added: string): string
	local value = tree:read(path)
	local at = 1
	for number = 1, line do
		local stop = string.find(value, "\n", at, true)
		if stop == nil then
			if number < line or at > #value then
				error(`{path} has only {#text.lines(value)} lines`, 0)
			end
			value ..= "\n"
			at = #value + 1
		else
			at = stop + 1
		end
	end
	local piece = if string.sub(added, -1) == "\n" then added else added .. "\n"
	tree:write(path, string.sub(value, 1, at - 1) .. piece .. string.sub(value, at))
	return `{#text.lines(piece)} lines stand behind line {line} now`
end

--- Does the same to each of several things, and says of each what came of it; fails where nothing was done.
local function each<T>(things: { T }, name: (thing: T) -> string, act: (thing: T) -> string): string
	local lines, done = {}, 0
	for _, thing in things do
		local ok, said = pcall(act, thing)
		done += if ok then 1 else 0
		table.insert(lines, `{name(thing)}: {if ok then said else "error: " .. failure.of(said).message}`)
	end
	local all = table.concat(lines, "\n")
	return if done > 0 then all else error("nothing was done\n" .. all, 0)
end

local PATH = { type = "string", description = "Relative to the top of the repository" }
local REPLACEMENT = {
	path = PATH,
	old = { type = "string", minLength = 1 },
	new = { type = "string" },
	all = { type = "boolean", description = "Replace it wherever it stands" },
}

local function path_of(thing: kit.Arguments): string
	return thing.path
end

writing.TOOLS = {
	{
		name = "write_file",
		description = "Writes a whole file, new or in the place of all that it had; folders above it are made.",
		parameters = { type = "object", required = { "path", "text" }, properties = { path = PATH, text = { type = "string" } } },
		writes = true,
		run = function(tree, arguments, seen)
			return write_file(tree, arguments.path, arguments.text, seen)
		end,
	},
	{
		name = "write_files",
		description = "Writes several whole files.",
		parameters = {
			type = "object",
			required = { "files" },
			properties = {
				files = {
					type = "array",
					minItems = 1,
					maxItems = MOST_FILES,
					items = { type = "object", required = { "path", "text" }, properties = { path = PATH, text = { type = "string" } } },
				},
			},
		},
		writes = true,
		run = function(tree, arguments, seen)
			return each(arguments.files, path_of, function(file): string
				return write_file(tree, file.path, file.text, seen)
			end)
		end,
	},
	{
		name = "replace_in_file",
		description = "Replaces a text in a file by another. The old text must be there exactly once, white space included, or all is true.",
		parameters = { type = "object", required = { "path", "old", "new" }, properties = REPLACEMENT },
		writes = true,
		run = function(tree, arguments)
			return replace(tree, arguments.path, arguments.old, arguments.new, arguments.all)
		end,
	},
	{
		name = "edit_files",
		description = "Makes several replacements, in one file or in many, one after another; says of each whether it was made.",
		parameters = {
			type = "object",
			required = { "edits" },
			properties = {
				edits = {
					type = "array",
					minItems = 1,
					maxItems = MOST_EDITS,
					items = { type = "object", required = { "path", "old", "new" }, properties = REPLACEMENT },
				},
			},
		},
		writes = true,
		run = function(tree, arguments)
			return each(arguments.edits, path_of, function(edit): string
				return replace(tree, edit.path, edit.old, edit.new, edit.all)
			end)
		end,
	},
	{
		name = "insert_in_file",
		description = "Puts lines into a file behind a line; 0 is before the first line.",
		parameters = {
			type = "object",
			required = { "path", "line", "text" },
			properties = { path = PATH, line = { type = "integer", minimum = 0 }, text = { type = "string", minLength = 1 } },
		},
		writes = true,
		run = function(tree, arguments)
			return insert(tree, arguments.path, arguments.line, arguments.text)
		end,
	},
	{
		name = "apply_patch",
		description = "Applies a unified diff with paths relative to the top of the repository: all of it, or nothing where a part does not fit.",
		parameters = {
			type = "object",
			required = { "patch" },
			properties = { patch = { type = "string", minLength = 1, description = "--- a/FILE, +++ b/FILE, @@ …, lines" } },
		},
		writes = true,
		run = function(tree, arguments, seen)
			local paths = tree:apply(arguments.patch)
			for _, path in paths do
				seen[source.normalize(path)] = true
			end
			return `applied to {table.concat(paths, ", ")}`
		end,
	},
	{
		name = "delete",
		description = "Deletes files, or folders with all that is in them.",
		parameters = {
			type = "object",
			required = { "paths" },
			properties = { paths = { type = "array", items = PATH, minItems = 1, maxItems = MOST_FILES } },
		},
		writes = true,
		run = function(tree, arguments)
			return each(arguments.paths, function(path: string): string
				return path
			end, function(path): string
				tree:delete(path)
				return "deleted"
			end)
		end,
	},
	{
		name = "move",
		description = "Moves or renames files or folders to places where nothing is yet; folders above them are made.",
		parameters = {
			type = "object",
			required = { "moves" },
			properties = {
				moves = {
					type = "array",
					minItems = 1,
					maxItems = MOST_FILES,
					items = { type = "object", required = { "from", "to" }, properties = { from = PATH, to = PATH } },
				},
			},
		},
		writes = true,
		run = function(tree, arguments, seen)
			return each(arguments.moves, function(move: kit.Arguments): string
				return move.from
			end, function(move): string
				tree:rename(move.from, move.to)
				seen[source.normalize(move.to)] = seen[source.normalize(move.from)]
				return `moved to {move.to}`
			end)
		end,
	},
} :: { kit.Tool }

return writing
