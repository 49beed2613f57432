--!strict
--- The state of a session while it runs. All of it follows from the record.

local nietz = require("@nietz")
local record = require("./record")
local workplace = require("../common/workplace")

local state = {}

--- An attempt, breakdown or validation as it is shown below its goal; its status is `open` until it is over.
export type Shot = {
	name: string,
	status: string,
	activity: string,
	--- When it began, in seconds since 1970.
	began: number,
	--- What the model has used; nil for a validation.
	used: { input: number, output: number, cost: number? }?,
}

export type Goal = {
	id: number,
	text: string,
	depth: number,
	--- How many breakdowns led from the root to it.
	breakdowns_above: number,
	branch: string,
	branch_id: number,
	--- The commit at which its branch began.
	base_commit: string,
	steps: { { id: number, command: string } },
	--- The attempts so far and their outcomes, for the next prompt.
	history: { string },
	--- The fingerprints of attempts so far, for noticing a stall.
	fingerprints: { [string]: boolean },
	children: { Goal },
	--- `open`, `success`, `failed` or `not_started`.
	status: string,
	shots: { Shot },
}

export type Session = {
	id: number,
	name: string,
	params: nietz.Values,
	models: { string },
	record: record.Record,
	workplace: workplace.Workplace,
	--- Ids of tools by name.
	tools: { [string]: number },
	--- The commit that protected files come from.
	start_commit: string,
	--- The globs of protected files.
	protected_globs: { string },
	--- The repository's files, as prompts list them.
	repo_listing: string,
	root: Goal?,
	goals: number,
	--- How many worktrees were made for validation.
	validations: number,
	breakdowns: number,
	tokens: number,
	--- US dollars; nil once something was used whose price is not known.
	cost: number?,
	started_at: number,
	--- Why it ended before the goal was reached, if it did.
	stop_reason: string?,
}

return state
