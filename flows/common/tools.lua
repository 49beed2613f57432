--!strict
--- The tools that models work with in a worktree, and the limits on their calls. Which tools a model is offered depends on
--- whether it may write.

local failure = require("./failure")
local git = require("@nietz/git")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local programs = require("./programs")
local text = require("@nietz/text")
local workplace = require("./workplace")

local tools = {}

--- The most that a model is given of a file or a search at once, in bytes.
local MAX_BYTES = 60000

local function shorten(value: string): string
	if #value <= MAX_BYTES then
		return value
	end
	return string.sub(value, 1, MAX_BYTES) .. `\n[cut here: {#value - MAX_BYTES} bytes are left out; ask for a part of it]`
end

local function path_parameter(what: string): llm.Schema
	return { type = "object", required = { "path" }, properties = { path = { type = "string", description = what } } }
end

--- Up to this many lines, a file is given whole whatever part was asked for: small models ask for its first line, and guess
--- the rest.
local SHORT_FILE = 100

--- Returns a range of lines of a text, with a note of what is left out.
local function line_range(value: string, from: number?, count: number?): string
	if from == nil and count == nil then
		return shorten(value)
	end
	local lines = text.lines(value)
	if #lines <= SHORT_FILE then
		return shorten(value)
	end
	local first = math.max(1, from or 1)
	local last = math.min(#lines, first + (count or #lines) - 1)
	return shorten(table.concat(lines, "\n", first, math.max(first - 1, last)) .. `\n[lines {first} to {last} of {#lines}]`)
end

--- The paths of the files that a model has read.
type Seen = { [string]: boolean }

local function normalize_path(path: string): string
	return (string.gsub(path, "^%./+", ""))
end

--- Reads a file for a model, and remembers that it has seen it.
local function read_file(tree: git.Handle, path: string, seen: Seen): string
	local content = tree:read(path)
	seen[normalize_path(path)] = true
	return content
end

--- Writes a whole file, and says how much of an old one is gone: models forget that they replace it. A file that the model
--- has not read is not replaced.
local function write_file(tree: git.Handle, path: string, content: string, seen: Seen): string
	local there, before = pcall(tree.read, tree, path)
	if there and before ~= "" and not seen[normalize_path(path)] then
		error(`{path} is there already, and you have not read it: read it first, or change a part with replace_in_file`, 0)
	end
	tree:write(path, content)
	seen[normalize_path(path)] = true
	if not there or before == "" or before == content then
		return "written"
	end
	return `written: {#text.lines(content)} lines, in the place of all {#text.lines(before)} that were there`
end

--- The arguments of a call, which are valid by the tool's `parameters`.
type Arguments = { [string]: any }

--- What an attempt has used, and how many of its calls may have changed files.
export type Usage = { calls: number, written: number, input: number, output: number, cached: number, cost: number? }

--- For whom tools are made, and who is told of each call.
export type Offer = {
	tree: git.Handle,
	workplace: workplace.Workplace,
	--- What builds begin with.
	builds: git.Builds?,
	--- The limits, and the commands that may be run.
	params: nietz.Values,
	writing: boolean,
	--- Whether it may run commands, also where it may not write.
	running: boolean?,
	--- What to run for a command that is a part of an allowed one, such as a single test; nil where it is none.
	single_test: ((command: string) -> git.Command?)?,
	--- The commands that say whether the goal is reached.
	validates: { string },
	--- Is told what the model does now.
	on_progress: (what: string) -> (),
	used: Usage,
	--- Are told of each tool that is offered, and of each call with its number.
	on_tool: ((name: string) -> ())?,
	on_call: (order: number, name: string, input: Arguments, output: string) -> (),
}

export type Tool = {
	name: string,
	description: string,
	parameters: llm.Schema,
	writes: boolean,
	run: (tree: git.Handle, arguments: Arguments, seen: Seen, offer: Offer) -> string,
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
			return line_range(read_file(tree, arguments.path, seen), arguments.from_line, arguments.lines)
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
				local ok, content = pcall(read_file, tree, path, seen)
				table.insert(parts, `=== {path}\n{if ok then content else "error: " .. failure.of(content).message}`)
			end
			return shorten(table.concat(parts, "\n"))
		end,
	},
	{
		name = "list_folder",
		description = "Returns the entries of a folder; folders end with a slash.",
		parameters = path_parameter("The folder; `.` is the top"),
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
			return if #found.paths > 0 then shorten(table.concat(found.paths, "\n")) .. more else "(none)"
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
			return if #lines > 0 then shorten(table.concat(lines, "\n")) else "(none)"
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
				local ok, said = pcall(write_file, tree, file.path, file.text, seen)
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
		run = function(tree, arguments, _, offer)
			local command, why = programs.resolve(offer.params, arguments.command)
			if command == nil and offer.single_test ~= nil then
				command = offer.single_test(arguments.command)
			end
			if command == nil then
				error(why, 0)
			end
			command.seconds = offer.params.command_seconds
			-- The worktree is the attempt's own: building or testing in it twice does no harm.
			command.repeatable = true
			local ran = workplace.exec(offer.workplace, tree, command, offer.builds)
			local how = if ran.over == "exit" then `exit code {ran.exit}` else `ended by its limit: {ran.over}`
			return `{how}\n{ran.output}`
		end,
	},
} :: { Tool }

--- Added to a result when all commands that validate pass: otherwise models go on, and spoil what they had reached.
local REACHED = "[all that validates this exits with 0 now. Unless a part of the goal is missing, call no more tools, and say what you did]"

--- Returns the tools for one model at work, and the function that takes calls which reach none of them. Each call is counted
--- in `used`.
function tools.offer(offer: Offer): ({ [string]: llm.Tool }, (call: llm.Call, why: string, so_far: llm.SoFar) -> ())
	local used, params = offer.used, offer.params
	local warned = false
	--- Counts a call and returns its number, or ends the attempt where a limit is reached. A model that only reads is first
	--- told, once, to answer from what it has seen: nil.
	local function admit(name: string, so_far: llm.SoFar): number?
		used.input, used.output, used.cached = so_far.usage.input, so_far.usage.output, so_far.usage.cached
		used.cost = so_far.cost
		if used.calls >= params.max_tools then
			if offer.writing or warned then
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
		offer.on_progress(`{name} ({used.calls})`)
		return used.calls
	end
	--- The calls since the last write: their answers still stand in the conversation, and hold.
	local asked: { [string]: boolean } = {}
	local seen: Seen = {}
	--- The commands that exited with 0 since something was written.
	local passing: { [string]: boolean } = {}
	local function run_tool(tool: Tool, arguments: Arguments): string
		local question = `{tool.name} {json.encode(arguments)}`
		if asked[question] then
			error("you have asked just this already, and nothing has changed since: the answer is above. Go on with it", 0)
		end
		local output = tool.run(offer.tree, arguments, seen, offer)
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
		if table.find(offer.validates, arguments.command) == nil then
			-- It may have changed what the others have looked at.
			table.clear(passing)
			return output
		end
		passing[arguments.command] = string.find(output, "^exit code 0\n") ~= nil
		for _, command in offer.validates do
			if not passing[command] then
				return output
			end
		end
		local line_end = if string.sub(output, -1) == "\n" then "" else "\n"
		return output .. line_end .. REACHED
	end
	local offered = {}
	for _, tool in tools.ALL do
		if tool.writes and not offer.writing and not (tool.name == "run" and offer.running) then
			continue
		end
		if offer.on_tool ~= nil then
			offer.on_tool(tool.name)
		end
		offered[tool.name] = {
			description = tool.description,
			parameters = tool.parameters,
			run = function(arguments: Arguments, so_far: llm.SoFar): string
				local order = admit(tool.name, so_far)
				if order == nil then
					error("no tool call is left. Answer now, from what you have seen", 0)
				end
				local ok, output = pcall(run_tool, tool, arguments)
				local shown = output
				if not ok then
					local raised = failure.of(output)
					shown = `error: {raised.message}{if raised.hint then "; " .. raised.hint else ""}`
				end
				offer.on_call(order, tool.name, arguments, shown)
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
		offer.on_call(order, name, if object then input else { arguments = call.arguments }, "error: " .. why)
	end
	return offered, rejected
end

return tools
