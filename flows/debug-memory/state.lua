--!strict
--- The state of a session while it runs. What lasts is in `doc`, which is valid by the schema at each save.

local documents = require("@nietz/documents")
local git = require("@nietz/git")
local nietz = require("@nietz")
local recall = require("../common/memory/recall")
local results = require("../common/memory/results")
local workplace = require("../common/workplace")

local state = {}

export type Session = {
	params: nietz.Values,
	limits: nietz.Values,
	--- `provider/model`.
	model: string,
	--- The memory file.
	doc: documents.Document,
	workplace: workplace.Workplace,
	tree: git.Handle,
	branch: string,
	--- The commit from which it starts.
	start_commit: string,
	protected_globs: { string },
	--- The repository's files, as prompts list them.
	repo_listing: string,
	--- The results of each execution.
	results: { results.Results },
	--- The LCOV file of the last execution.
	lcov: string?,
	--- The commit of each execution.
	commits: { string },
	--- By execution: the pattern of mistakes that its fix is for.
	fix_patterns: { [number]: { name: string, category: string, template: string } },
	--- By signature: how often a failure was seen.
	failure_counts: { [string]: number },
	--- Similar failures and patterns of earlier sessions.
	similar_past: { recall.Past },
	known_patterns: { recall.Pattern },
	--- Why the tests cannot run here, if the last run of them could not.
	cannot_run: string?,
	tokens: number,
	cost: number?,
	tool_calls: number,
}

return state
