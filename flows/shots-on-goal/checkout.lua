--!strict
--- Creates a branch and a worktree from the head of a goal's branch: for an attempt, or for validation.

local git = require("@nietz/git")
local record = require("./record")
local state = require("./state")

local checkout = {}

export type Checkout = { branch: string, branch_id: number, start: string, tree: git.Handle, worktree_id: number }

--- Creates and records both. They are named after the goal and the attempt's own id, as in `g3-a7`, or the next number of a
--- validation (`g3-v1`); `suffix` is for the branch alone.
function checkout.create(self: state.Session, goal: state.Goal, letter: string, suffix: string, reason: string, attempt: number?): Checkout
	if attempt == nil then
		self.validations += 1
	end
	local name = `g{goal.id}-{letter}{attempt or self.validations}`
	local branch = `{(self.root :: state.Goal).branch}-{name}{suffix}`
	local start = git.commit_of(goal.branch) :: string
	git.branch(branch, start)
	local branch_id = record.add(self.record, "branch", {
		session_id = self.id,
		name = branch,
		parent_branch_id = goal.branch_id,
		parent_commit_sha = start,
		reason = "attempt",
		created_by_goal_id = goal.id,
	})
	local tree = git.worktree({ name = name, branch = branch })
	local worktree_id = record.add(self.record, "worktree", {
		branch_id = branch_id,
		path = tree.path,
		start_sha = start,
		reason = reason,
	})
	return { branch = branch, branch_id = branch_id, start = start, tree = tree, worktree_id = worktree_id }
end

return checkout
