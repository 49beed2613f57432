--!strict
--- What a session knows while it goes on. All of it can be told from the record.

local nietz = require("@nietz")
local record = require("./record")

local state = {}

--- Something that works on a goal, for showing: its status is `open` until it is over.
export type Shot = { name: string, status: string, doing: string }

export type Goal = {
	id: number,
	text: string,
	depth: number,
	--- Breakdowns on the way from the root to it.
	path: number,
	branch: string,
	branch_id: number,
	--- The commit at which its branch began.
	base: string,
	steps: { { id: number, command: string } },
	--- Attempts so far, and what became of them: for the next one.
	history: { string },
	--- Trees with their validation results that were seen, for noticing a stall.
	seen: { [string]: boolean },
	children: { Goal },
	--- `open`, `success`, `failed` or `not_started`.
	state: string,
	shots: { Shot },
}

export type Session = {
	id: number,
	name: string,
	params: nietz.Values,
	models: { string },
	record: record.Record,
	--- Ids of tools by name.
	tools: { [string]: number },
	--- The commit that protected files come from.
	start: string,
	--- The globs of protected files.
	protected: { string },
	--- What models are told of the repository's files.
	layout: string,
	root: Goal?,
	goals: number,
	attempts: number,
	breakdowns: number,
	tokens: number,
	--- US dollars; nil once something was used whose price is not known.
	cost: number?,
	began: number,
	--- Why it ended before it was done, if it did.
	stopped: string?,
}

return state
