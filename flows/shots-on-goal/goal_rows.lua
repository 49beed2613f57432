--!strict
--- What a goal leaves in the record and in git: its rows, its branch, and merges onto that. Apart, because goals of the command
--- line, of breakdowns and of `--each` are made, merged and closed alike.

local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local messages = require("./messages")
local record = require("./record")
local state = require("./state")

local goal_rows = {}

--- Records a goal with its validation. It is of the breakdown `by`, or without one of the command line.
function goal_rows.new(self: state.Session, text: string, commands: { string }, parent: state.Goal?, order: number, by: number?): state.Goal
	local source = if by then "breakdown" else "cli"
	local id = record.add(self.record, "goal", {
		session_id = self.id,
		goal_text = text,
		parent_goal_id = if parent then parent.id else nil,
		order = order,
		source = source,
		created_by_attempt_id = by,
	})
	local steps = {}
	for index, command in commands do
		local step = record.add(self.record, "validation_step", {
			goal_id = id,
			order = index,
			command = command,
			source = source,
		})
		table.insert(steps, { id = step, command = command })
	end
	return {
		id = id,
		text = text,
		depth = if parent then parent.depth + 1 else 1,
		breakdowns_above = if parent then parent.breakdowns_above + 1 else 0,
		branch = "",
		branch_id = 0,
		base_commit = "",
		steps = steps,
		history = {},
		fingerprints = {},
		children = {},
		status = "open",
		shots = {},
		order = order,
		made_by = by,
		after = {},
		stage = "to come",
		begun = 0,
		unmerged = 0,
	}
end

--- Records what became of a goal: `success`, `failed` or `not_started`, and why.
function goal_rows.close(self: state.Session, target: state.Goal, status: string, detail: string)
	target.status = status
	record.add(self.record, "goal_end", { goal_id = target.id, status = status, status_detail = detail })
end

--- Creates the branch of a goal, from its parent's or from the start commit.
function goal_rows.open(self: state.Session, target: state.Goal, name: string, from: string, parent: state.Goal?)
	git.branch(name, from)
	target.branch = name
	target.base_commit = from
	target.branch_id = record.add(self.record, "branch", {
		session_id = self.id,
		name = name,
		parent_branch_id = if parent then parent.branch_id else nil,
		parent_commit_sha = from,
		reason = "goal",
		created_by_goal_id = target.id,
	})
end

--- Merges a branch into a goal's. Returns why it cannot be merged, or nil; and whether the reason is not in the two branches,
--- so that no further attempt can help.
function goal_rows.merge(self: state.Session, from: string, from_id: number, into: state.Goal, what: string): (string?, boolean)
	local began, merged = leftovers.try(function()
		local message = messages.merge(self, into, what)
		return git.merge({ from = from, into = into.branch, message = message, author = self.params.author })
	end)
	if not began then
		return merged, true
	end
	local row = {
		from_branch_id = from_id,
		from_commit_sha = merged.from,
		to_branch_id = into.branch_id,
		to_commit_sha = merged.into,
	} :: record.Row
	if merged.commit == nil then
		row.paths, row.messages = merged.conflicts, merged.messages
		record.add(self.record, "merge_conflict", row)
		return "conflicts in " .. table.concat(merged.conflicts :: { string }, ", "), false
	end
	row.result_commit_sha = merged.commit
	record.add(self.record, "merge", row)
	return nil, false
end

return goal_rows
