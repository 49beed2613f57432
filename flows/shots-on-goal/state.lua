--!strict
--- The state of a session while it runs. All of it follows from the record.

local comparison = require("./comparison")
local guards = require("../common/guards/guards")
local nietz = require("@nietz")
local record = require("./record")
local results = require("../common/memory/results")
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

--- A failed attempt that came nearest to its goal.
export type Best = {
	attempt: number,
	branch: string,
	branch_id: number,
	commit: string,
	--- The commit of the goal's branch for which that holds.
	base: string,
	runs: comparison.Runs,
	--- Whether it is better than what the goal's branch had: only such a one is gone on from.
	better: boolean,
}

--- What the last failed attempt had changed, for the next prompt.
export type LastDiff = { attempt: number, patch: string, cut: boolean }

--- How a command ended on a commit, or on a tree.
export type Known = { exit: number, output: string, report: results.Results? }

--- A round of shots: which of them was the first to validate, and by which name those under way are stopped, where there are
--- several.
export type Round = { validated: number?, name: string? }
--- A command that validates a goal, by its row.
export type Step = { id: number, command: string }

--- A part that `--each` asks for: a file or folder, and what validates it.
export type Each = { path: string, commands: { string } }

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
	steps: { Step },
	--- The attempts so far and their outcomes, for the next prompt.
	history: { string },
	--- The fingerprints of attempts so far, for noticing a stall.
	fingerprints: { [string]: boolean },
	children: { Goal },
	--- `open`, `success`, `failed` or `not_started`.
	status: string,
	shots: { Shot },
	--- How what validates came out on the commit at which its branch began.
	baseline: comparison.Runs?,
	best: Best?,
	last_diff: LastDiff?,
	--- Its number among its siblings.
	order: number,
	--- The breakdown that made it; nil for a goal of the command line.
	made_by: number?,
	--- Its file or folder, where `--each` made it.
	path: string?,
	--- The siblings that must be merged before it is begun.
	after: { Goal },
	--- Where it stands among its siblings: `to come`, `in work`, `reached` (and to be merged), `merged`, `failed`
	--- or `not begun`.
	stage: string,
	--- How often it was begun, each time from its parent's branch as it was then.
	begun: number,
	--- How often what it reached could not be merged.
	unmerged: number,
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
	--- What of the tests must stay as it was.
	guards: guards.Guards,
	--- What the tests of the user's own commands said on the start commit, by the command; absent where nothing reads them.
	baseline: { [string]: results.Results },
	--- What commands did on commits and trees, by `ID COMMAND`: none is run twice on the same files.
	known: { [string]: Known },
	--- Whether the user was told of a command whose tests cannot be counted.
	uncounted_told: boolean,
	--- Whether what validates passed before anything was changed, and the user accepts that.
	unproven: boolean,
	--- The parts of `--each`; empty without.
	each: { Each },
	--- How many parts are worked on now, in the whole session.
	working: number,
	root: Goal?,
	--- How many worktrees were made for validation.
	validations: number,
	breakdowns: number,
	tokens: number,
	--- The tokens as limits count them: those that came from a provider's cache less.
	counted_tokens: number,
	--- US dollars; nil once something was used whose price is not known.
	cost: number?,
	started_at: number,
	--- Why it ended before the goal was reached, if it did.
	stop_reason: string?,
}

return state
