--!strict
--- The tools that models have. Which of them an attempt may use is decided here, by its kind.

local failure = require("./failure")
local git = require("@nietz/git")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local programs = require("./programs")
local text = require("@nietz/text")

local tools = {}

--- How much of a file or a search a model is given at once.
local MOST = 60000

local function bounded(value: string): string
	if #value <= MOST then
		return value
	end
	return string.sub(value, 1, MOST) .. `\n[cut here: {#value - MOST} bytes are left out; ask for a part of it]`
end

local function path_only(what: string): llm.Schema
	return { type = "object", required = { "path" }, properties = { path = { type = "string", description = what } } }
end

--- A text of so many lines is given whole: small models ask for the first line of a file, and guess the rest.
local SHORT = 100

--- Returns the lines of a text from one on, with a note of what is left out.
local function window(value: string, from: number?, count: number?): string
	if from == nil and count == nil then
		return bounded(value)
	end
	local lines = text.lines(value)
	if #lines <= SHORT then
		return bounded(value)
	end
	local first = math.max(1, from or 1)
	local last = math.min(#lines, first + (count or #lines) - 1)
	return bounded(table.concat(lines, "\n", first, math.max(first - 1, last)) .. `\n[lines {first} to {last} of {#lines}]`)
end

--- The files whose texts a model has seen, by path.
type Seen = { [string]: boolean }

local function plain(path: string): string
	return (string.gsub(path, "^%./+", ""))
end

--- Reads a file for a model.
local function look(tree: git.Handle, path: string, seen: Seen): string
	local content = tree:read(path)
	seen[plain(path)] = true
	return content
end

--- Writes a whole file, and tells what of an old one is gone: models forget that they replace it. What they have never
--- seen they may not replace.
local function put(tree: git.Handle, path: string, content: string, seen: Seen): string
	local there, before = pcall(tree.read, tree, path)
	if there and before ~= "" and not seen[plain(path)] then
		error(`{path} is there already, and you have not read it: read it first, or change a part with replace_in_file`, 0)
	end
	tree:write(path, content)
	seen[plain(path)] = true
	if not there or before == "" or before == content then
		return "written"
	end
	return `written: {#text.lines(content)} lines, in the place of all {#text.lines(before)} that were there`
end

--- What a tool is called with: valid by its `parameters`.
type Arguments = { [string]: any }

export type Tool = {
	name: string,
	description: string,
	parameters: llm.Schema,
	writes: boolean,
	run: (tree: git.Handle, arguments: Arguments, seen: Seen, params: nietz.Values) -> string,
}

tools.ALL = {
	{
		name = "read_file",
		description = "Returns the text of a file; with from_line and lines, a part of a long one.",
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
			return window(look(tree, arguments.path, seen), arguments.from_line, arguments.lines)
		end,
	},
	{
		name = "read_files",
		description = "Returns the texts of several files.",
		parameters = {
			type = "object",
			required = { "paths" },
			properties = { paths = { type = "array", items = { type = "string" }, minItems = 1, maxItems = 20 } },
		},
		writes = false,
		run = function(tree, arguments, seen)
			local parts = {}
			for _, path in arguments.paths do
				local ok, content = pcall(look, tree, path, seen)
				table.insert(parts, `=== {path}\n{if ok then content else "error: " .. failure.of(content).message}`)
			end
			return bounded(table.concat(parts, "\n"))
		end,
	},
	{
		name = "list_folder",
		description = "Returns the entries of a folder; folders end with a slash.",
		parameters = path_only("The folder; `.` is the top"),
		writes = false,
		run = function(tree, arguments)
			local names = {}
			for _, entry in tree:list(arguments.path).entries do
				table.insert(names, entry.name .. (if entry.kind == "folder" then "/" else ""))
			end
			return if #names > 0 then table.concat(names, "\n") else "(empty)"
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
			return if #found.paths > 0 then bounded(table.concat(found.paths, "\n")) .. more else "(none)"
		end,
	},
	{
		name = "grep",
		description = "Returns the lines that match a regular expression, as path:line: text.",
		parameters = {
			type = "object",
			required = { "pattern" },
			properties = {
				pattern = { type = "string", description = "A regular expression without look-around" },
				glob = { type = "string", description = "Only in files whose paths match" },
			},
		},
		writes = false,
		run = function(tree, arguments)
			local found = tree:grep(arguments.pattern, arguments.glob)
			local lines = {}
			for _, line in found.lines do
				table.insert(lines, `{line.path}:{line.line}: {line.text}`)
			end
			if found.cut then
				table.insert(lines, "[there are more]")
			end
			return if #lines > 0 then bounded(table.concat(lines, "\n")) else "(none)"
		end,
	},
	{
		name = "write_file",
		description = "Writes a whole file, new or in the place of all that it had; folders above it are made.",
		parameters = {
			type = "object",
			required = { "path", "text" },
			properties = { path = { type = "string" }, text = { type = "string" } },
		},
		writes = true,
		run = function(tree, arguments, seen)
			return put(tree, arguments.path, arguments.text, seen)
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
					maxItems = 20,
					items = {
						type = "object",
						required = { "path", "text" },
						properties = { path = { type = "string" }, text = { type = "string" } },
					},
				},
			},
		},
		writes = true,
		run = function(tree, arguments, seen)
			local lines, written = {}, 0
			for _, file in arguments.files do
				local ok, said = pcall(put, tree, file.path, file.text, seen)
				written += if ok then 1 else 0
				table.insert(lines, `{file.path}: {if ok then said else "error: " .. failure.of(said).message}`)
			end
			local all = table.concat(lines, "\n")
			return if written > 0 then all else error("nothing was written\n" .. all, 0)
		end,
	},
	{
		name = "replace_in_file",
		description = "Replaces a text in a file by another. The old text must be there exactly once, white space included.",
		parameters = {
			type = "object",
			required = { "path", "old", "new" },
			properties = { path = { type = "string" }, old = { type = "string", minLength = 1 }, new = { type = "string" } },
		},
		writes = true,
		run = function(tree, arguments)
			return `replaced in line {tree:replace(arguments.path, arguments.old, arguments.new)}`
		end,
	},
	{
		name = "run",
		description = "Runs a command at the top of the repository, without the network, and returns its exit code and output. Only the commands that the task allows.",
		parameters = { type = "object", required = { "command" }, properties = { command = { type = "string" } } },
		writes = true,
		run = function(tree, arguments, _, params)
			local command, why = programs.allowed(params, arguments.command)
			if command == nil then
				error(why, 0)
			end
			command.seconds = params.command_seconds
			-- The worktree is the attempt's own: building or testing in it twice does no harm.
			command.repeatable = true
			local ran = tree:exec(command)
			local how = if ran.over == "exit" then `exit code {ran.exit}` else `ended by its limit: {ran.over}`
			return `{how}\n{ran.output}`
		end,
	},
} :: { Tool }

--- What an attempt has used, and how many of its calls may have changed files.
export type Used = { calls: number, written: number, input: number, output: number, cached: number, cost: number? }

--- Who is offered tools, and what becomes of each call.
export type Offer = {
	tree: git.Handle,
	--- The limits, and the commands that may be run.
	params: nietz.Values,
	writing: boolean,
	--- The commands that say whether the goal is reached.
	validates: { string },
	--- Told what goes on.
	doing: (what: string) -> (),
	used: Used,
	--- Told of each tool that is there, and of each call with its number.
	offers: ((name: string) -> ())?,
	keep: (order: number, name: string, input: Arguments, output: string) -> (),
}

--- Said when all commands that validate pass: models go on, and spoil what they had reached.
local REACHED = "[all that validates this exits with 0 now. Unless a part of the goal is missing, call no more tools, and say what you did]"

--- Returns the tools for one exchange with a model, and what is told of calls that reach none of them. Each call is
--- counted in `used`.
function tools.offer(to: Offer): ({ [string]: llm.Tool }, (call: llm.Call, why: string, so_far: llm.SoFar) -> ())
	local used, params = to.used, to.params
	local warned = false
	--- Lets a call in, or ends the attempt where a limit is reached; returns the call's number. Who only looks is told
	--- once that it has looked enough, and may answer from what it has seen: nil.
	local function admit(name: string, so_far: llm.SoFar): number?
		used.input, used.output, used.cached = so_far.usage.input, so_far.usage.output, so_far.usage.cached
		used.cost = so_far.cost
		if used.calls >= params.max_tools then
			if to.writing or warned then
				llm.stop("tool_limit")
			end
			warned = true
			return nil
		end
		if used.input + used.output > params.attempt_tokens then
			llm.stop("tokens")
		end
		if params.attempt_cost ~= nil and (used.cost or math.huge) > params.attempt_cost then
			llm.stop("cost")
		end
		used.calls += 1
		to.doing(`{name} ({used.calls})`)
		return used.calls
	end
	--- What was asked since something was written: the answers stand in the conversation.
	local asked: { [string]: boolean } = {}
	local seen: Seen = {}
	--- The commands that exited with 0 since something was written.
	local passing: { [string]: boolean } = {}
	local function once(tool: Tool, arguments: Arguments): string
		local question = `{tool.name} {json.encode(arguments)}`
		if asked[question] then
			error("you have asked just this already, and nothing has changed since: the answer is above. Go on with it", 0)
		end
		local output = tool.run(to.tree, arguments, seen, params)
		if not tool.writes then
			asked[question] = true
			return output
		end
		table.clear(asked)
		used.written += 1
		if tool.name ~= "run" then
			table.clear(passing)
			return output
		end
		if table.find(to.validates, arguments.command) == nil then
			-- It may have changed what the others have looked at.
			table.clear(passing)
			return output
		end
		passing[arguments.command] = string.find(output, "^exit code 0\n") ~= nil
		for _, command in to.validates do
			if not passing[command] then
				return output
			end
		end
		local line_end = if string.sub(output, -1) == "\n" then "" else "\n"
		return output .. line_end .. REACHED
	end
	local offered = {}
	for _, tool in tools.ALL do
		if tool.writes and not to.writing then
			continue
		end
		if to.offers ~= nil then
			to.offers(tool.name)
		end
		offered[tool.name] = {
			description = tool.description,
			parameters = tool.parameters,
			run = function(arguments: Arguments, so_far: llm.SoFar): string
				local order = admit(tool.name, so_far)
				if order == nil then
					error("no tool call is left. Answer now, from what you have seen", 0)
				end
				local ok, output = pcall(once, tool, arguments)
				local shown = output
				if not ok then
					local problem = failure.of(output)
					shown = `error: {problem.message}{if problem.hint then "; " .. problem.hint else ""}`
				end
				to.keep(order, tool.name, arguments, shown)
				if not ok then
					error(output, 0)
				end
				return output
			end,
		}
	end
	local function rejected(call: llm.Call, why: string, so_far: llm.SoFar)
		local name = if call.name == "" then "(no name)" else call.name
		local order = admit(name, so_far)
		if order == nil then
			return
		end
		local ok, input = pcall(json.decode, call.arguments)
		local object = ok and type(input) == "table" and #input == 0
		to.keep(order, name, if object then input else { arguments = call.arguments }, "error: " .. why)
	end
	return offered, rejected
end

return tools
