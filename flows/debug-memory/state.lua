--!strict
--- The state of a session while it runs. What lasts is in `doc`, which is valid by the schema at each save.

local documents = require("@nietz/documents")
local git = require("@nietz/git")
local guards = require("../common/guards/guards")
local nietz = require("@nietz")
local recall = require("../common/memory/recall")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local workplace = require("../common/workplace")

local state = {}

--- How a session ended: the status of the schema, what triggered the end where the specification or this mode has a word for
--- it, and why in words.
export type Ending = { status: string, trigger: string?, detail: string }

--- A failure that is left as it is: because the user said so (`wont_fix`), or because a person has to look (`escalated`).
export type SetAside = { test: string, resolution: string, note: string }

--- What an analysis noticed besides the cause, and at which execution.
export type Issue = { attempt: number, issue: string, location: string, severity: string }

export type Session = {
	params: nietz.Values,
	limits: nietz.Values,
	--- `provider/model`: who analyses and mends now.
	model: string,
	--- The memory file.
	doc: documents.Document,
	workplace: workplace.Workplace,
	tree: git.Handle,
	branch: string,
	--- The commit from which it starts.
	start_commit: string,
	--- The commit of the last fix that held; the start commit before.
	kept_commit: string,
	--- What of the tests must stay as it was.
	guards: guards.Guards,
	--- The repository's files, as prompts list them.
	repo_listing: string,
	--- Of each execution: its results, its commit, git's id of the tree of its files, and what it wrote.
	results: { results.Results },
	commits: { string },
	trees: { string },
	outputs: { string },
	--- The LCOV file of the last execution.
	lcov: string?,
	--- What ended the last execution before it was done: `timeout` or another limit.
	over_limit: string?,
	--- Whether the last fix was ended by its own limit of time.
	late: boolean,
	--- Whether commands are held by a sandbox; nil where that is not known.
	in_sandbox: boolean?,
	--- What the runs depend on, by the name of a runtime.
	versions: { [string]: string },
	--- By execution: the pattern of mistakes that its fix is for, and whether it is a known one that was applied.
	fix_patterns: { [number]: { name: string, category: string, template: string } },
	--- By test: how many fixes were for it since the last progress; and by signature: how many left it as it was.
	tries: { [string]: number },
	failure_counts: { [string]: number },
	set_aside: { SetAside },
	--- Matters of security that are flagged for a person.
	concerns: { string },
	issues: { Issue },
	--- What would prevent such mistakes, as analyses say.
	recommendations: { string },
	--- What the last analysis has read.
	read_paths: { string },
	--- Whether the stronger model has had its round.
	senior: boolean,
	--- Failures of earlier sessions that may be like those of now; of these, the ones whose cause is; and patterns.
	candidates: { recall.Past },
	similar_past: { recall.Past },
	known_patterns: { recall.Pattern },
	--- Why the tests cannot run here, if the last run of them could not.
	cannot_run: string?,
	tokens: number,
	cost: number?,
	tool_calls: number,
}

--- Returns the reason of an ending: what triggered it, and why.
function state.reason(ending: Ending): string
	return if ending.trigger then `{ending.trigger}: {ending.detail}` else ending.detail
end

--- Returns the ending for a person, with what triggered it.
function state.escalated(trigger: string, detail: string): Ending
	return { status = "escalated", trigger = trigger, detail = detail }
end

--- Returns this mode's own part of the memory file, which stands under one key beside what is specified.
function state.own(self: Session): documents.Document
	self.doc.nietz = self.doc.nietz or { version = 1 }
	return self.doc.nietz
end

--- Returns the names of failures, the first ones, for a sentence.
function state.names(failures: { report.Failure }): string
	local names = {}
	for index = 1, math.min(3, #failures) do
		table.insert(names, failures[index].test_name)
	end
	local more = #failures - #names
	return table.concat(names, ", ") .. (if more > 0 then ` and {more} more` else "")
end

return state
