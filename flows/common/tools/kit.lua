--!strict
--- What all tools of a worktree share: their shape, for whom they are made, and what an attempt has used.

local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local source = require("./source")
local workplace = require("../workplace")

local kit = {}

export type Arguments = source.Arguments
export type Seen = source.Seen

--- What an attempt has used, and how many of its calls may have changed files.
export type Usage = {
	calls: number,
	--- The replies of the model.
	turns: number,
	written: number,
	input: number,
	output: number,
	cached: number,
	cost: number?,
	--- How many results of tools were left out of the conversation where the model's window was full.
	left_out: number,
	--- Which limit has ended it: `calls`, `turns`, `tokens`, `cost`, `seconds` or `silence`.
	ended_by: string?,
}

--- A long output of a command, of which the model has seen a part.
export type Output = { number: number, lines: { string } }

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
	--- The files that validation takes from the start commit.
	protected: { start: string, globs: { string } }?,
	--- The commands that say whether the goal is reached.
	validates: { string },
	--- Is told what the model does now.
	on_progress: (what: string) -> (),
	used: Usage,
	--- Are told of each tool that is offered, and of each call with its number.
	on_tool: ((name: string) -> ())?,
	on_call: (order: number, name: string, input: Arguments, output: string) -> (),
}

--- What the tools of one model share while it works.
export type Desk = {
	offer: Offer,
	seen: Seen,
	--- The last long outputs of commands, and how many commands were run.
	outputs: { Output },
	ran: number,
	--- What the worktree differed by before the first command of a model that only looks.
	looked_at: string?,
}

export type Tool = {
	name: string,
	description: string,
	parameters: llm.Schema,
	writes: boolean,
	run: (tree: git.Handle, arguments: Arguments, seen: Seen, desk: Desk) -> string,
}

--- The weight of a token that the provider has read from its cache, in limits: about what providers ask for one.
local CACHED_WEIGHT = 0.1

--- Returns what nobody has used yet.
function kit.usage(): Usage
	return { calls = 0, turns = 0, written = 0, input = 0, output = 0, cached = 0, cost = 0, left_out = 0, ended_by = nil }
end

--- Returns the tokens as limits count them: one that came from the provider's cache is a tenth of one.
function kit.counted_tokens(used: Usage): number
	return math.ceil(used.input - used.cached + used.cached * CACHED_WEIGHT + used.output)
end

return kit
