--!strict
--- Creates a branch and a worktree: for an attempt, or for validation. They begin at the head of the goal's branch, or an attempt
--- where the best one that failed has ended.

local git = require("@nietz/git")
local record = require("./record")
local state = require("./state")

local checkout = {}

export type Checkout = { branch: string, branch_id: number, start: string, tree: git.Handle, worktree_id: number }

--- Returns the best failed attempt, where the next one is to go on from it: it is better than what the goal's branch has, and that
--- has not moved since.
function checkout.continued(self: state.Session, goal: state.Goal): state.Best?
	local best = goal.best
	if self.params.continue == "never" or best == nil or not best.better or best.base ~= git.commit_of(goal.branch) then
		return nil
	end
	return best
end

--- Creates and records both. They are named after the goal and the attempt's own id, as in `g3-a7`, or the next number of a
--- validation (`g3-v1`); `suffix` is for the branch alone.
function checkout.create(self: state.Session, goal: state.Goal, letter: string, suffix: string, reason: string, attempt: number?): Checkout
	if attempt == nil then
		self.validations += 1
	end
	local name = `g{goal.id}-{letter}{attempt or self.validations}`
	local branch = `{(self.root :: state.Goal).branch}-{name}{suffix}`
	local continued = if reason == "attempt" then checkout.continued(self, goal) else nil
	local start = if continued then continued.commit else git.commit_of(goal.branch) :: string
	git.branch(branch, start)
	local branch_id = record.add(self.record, "branch", {
		session_id = self.id,
		name = branch,
		parent_branch_id = if continued then continued.branch_id else goal.branch_id,
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
