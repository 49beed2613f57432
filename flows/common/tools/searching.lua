--!strict
--- The tools with which a model finds, searches and reads files, wherever they are: in a worktree, or in the workspace.

local failure = require("../failure")
local llm = require("@nietz/llm")
local source = require("./source")
local text = require("@nietz/text")

local searching = {}

export type Tool = {
	name: string,
	description: string,
	parameters: llm.Schema,
	writes: boolean,
	run: (from: source.Source, arguments: source.Arguments, seen: source.Seen) -> string,
}

--- The most lines of a search that are returned at once, and the most around each.
local MOST_LINES, MOST_CONTEXT = 200, 20
--- How many files of the same name are named where a path is wrong.
local MOST_NEAR = 5

--- Returns lines with their numbers, and says which of how many they are where that is not all.
function searching.number_lines(value: string, from: number?, count: number?): string
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
		if size > source.MOST_BYTES and #out > 0 then
			last = number - 1
			break
		end
		table.insert(out, source.shorten(line))
	end
	if first > 1 or last < #lines then
		table.insert(out, `[lines {first} to {last} of {#lines}{if last < #lines then `; go on with from_line {last + 1}` else ""}]`)
	end
	return table.concat(out, "\n")
end

--- Returns what a search has found, as lines such as `path:12: text`, `path-13- text` for those beside.
local function render_found(found: source.Found, skip: number): string
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
	return if #lines > 0 then source.shorten(table.concat(lines, "\n")) else "(none)"
end

--- Returns what to do about a failure: the paths that were likely meant where one does not exist, or `otherwise`.
function searching.hint(from: source.Source, arguments: source.Arguments, raised: failure.Failure, otherwise: string?): string?
	if raised.code ~= "request-invalid" or string.find(raised.message, "does not exist", 1, true) == nil then
		return raised.hint
	end
	local name = if type(arguments.path) == "string" then string.match(arguments.path, "([^/]+)/*$") else nil
	local found = if name ~= nil then from:find("**/" .. source.literal_glob(name)).paths else {}
	if #found == 0 then
		return otherwise
	end
	return `did you mean {table.concat(found, ", ", 1, math.min(#found, MOST_NEAR))}?`
end

searching.READ = {
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
	run = function(from, arguments, seen)
		return searching.number_lines(source.read_file(from, arguments.path, seen), arguments.from_line, arguments.lines)
	end,
} :: Tool

searching.FIND = {
	name = "find_files",
	description = "Returns the files whose paths match a glob, such as src/**/*.rs.",
	parameters = { type = "object", required = { "glob" }, properties = { glob = { type = "string" } } },
	writes = false,
	run = function(from, arguments)
		local found = from:find(arguments.glob)
		local more = if found.cut then "\n[there are more]" else ""
		return if #found.paths > 0 then source.shorten(table.concat(found.paths, "\n")) .. more else "(none)"
	end,
} :: Tool

searching.GREP = {
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
	run = function(from, arguments)
		local skip = arguments.skip or 0
		local found = from:grep(arguments.pattern, arguments.glob, {
			skip = skip,
			context = arguments.context,
			by_file = arguments.files_only,
		})
		return render_found(found, skip)
	end,
} :: Tool

return searching
