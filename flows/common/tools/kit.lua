--!strict
--- What all tools share: their shape, what a model has seen, and how paths and long texts are treated.

local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local text = require("@nietz/text")
local workplace = require("../workplace")

local kit = {}

--- The arguments of a call, which are valid by the tool's `parameters`.
export type Arguments = { [string]: any }

--- The paths of the files that a model has read.
export type Seen = { [string]: boolean }

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

--- The most that a model is given of a file or a search at once, in bytes.
kit.MOST_BYTES = 60000

--- Returns a text, cut where it is too long.
function kit.shorten(value: string): string
	if #value <= kit.MOST_BYTES then
		return value
	end
	return text.truncate(value, kit.MOST_BYTES) .. `\n[cut here: {#value - kit.MOST_BYTES} bytes are left out; ask for a part of it]`
end

--- Returns a path without `./` in front.
function kit.normalize(path: string): string
	return (string.gsub(path, "^%./+", ""))
end

--- Returns a glob that matches just this path.
function kit.literal_glob(path: string): string
	return (string.gsub(path, "[%[%]%*%?{}]", "[%0]"))
end

--- Reads a file for a model, and remembers that it has seen it.
function kit.read_file(tree: git.Handle, path: string, seen: Seen): string
	local content = tree:read(path)
	seen[kit.normalize(path)] = true
	return content
end

return kit
