--!strict
--- What a session knows while it goes on. Everything that lasts is in `doc`, which is valid by the schema at each save.

local documents = require("@nietz/documents")
local git = require("@nietz/git")
local nietz = require("@nietz")
local recall = require("../common/memory/recall")
local results = require("../common/memory/results")

local state = {}

export type Session = {
	params: nietz.Values,
	limits: nietz.Values,
	--- `provider/model`.
	model: string,
	--- The memory file.
	doc: documents.Document,
	tree: git.Handle,
	branch: string,
	--- The commit from which it starts.
	start: string,
	protected: { string },
	--- What models are told of the repository's files.
	layout: string,
	--- The results of each execution.
	seen: { results.Results },
	--- What the last execution wrote about covered lines.
	lcov: string?,
	--- The commit of each execution.
	commits: { string },
	--- By execution: the pattern whose mistake its fix mends.
	patterns: { [number]: { name: string, category: string, template: string } },
	--- How often each failure was seen.
	counts: { [string]: number },
	past: { recall.Past },
	known: { recall.Pattern },
	tokens: number,
	cost: number?,
	tools: number,
}

return state
