--!strict
--- The end of a session: its last rows, its result as one commit where that was asked for, and what the user is told of it.

local git = require("@nietz/git")
local messages = require("./messages")
local nietz = require("@nietz")
local record = require("./record")
local report = require("./report")
local shots = require("./shots")
local show = require("./show")
local state = require("./state")
local summary = require("./summary")
local ui = require("@nietz/ui")

local ending = {}

--- What the session ends with: a branch, its row and its commit.
type Offer = { branch: string, branch_id: number, commit: string }

--- Makes one commit of all that a session has brought, on a branch of its own, and records both.
local function squash(self: state.Session, root: state.Goal): Offer
	local name = `{root.branch}-squashed`
	git.branch(name, root.base_commit)
	local branch_id = record.add(self.record, "branch", {
		session_id = self.id,
		name = name,
		parent_branch_id = root.branch_id,
		parent_commit_sha = root.base_commit,
		reason = "goal",
		created_by_goal_id = root.id,
	})
	local merged = git.merge({
		from = root.branch,
		into = name,
		message = messages.squash(self, root),
		squash = true,
		author = self.params.author,
	})
	record.add(self.record, "merge", {
		from_branch_id = root.branch_id,
		from_commit_sha = merged.from,
		to_branch_id = branch_id,
		to_commit_sha = merged.into,
		result_commit_sha = merged.commit,
	})
	return { branch = name, branch_id = branch_id, commit = merged.commit :: string }
end

--- Returns how a goal was reached: with which attempt, or with its parts.
local function reached_how(all: summary.Summary, root: record.Row, result_id: number): string
	local merged = summary.merged_attempt(all, root)
	if merged ~= nil then
		return `reached with attempt {merged.id}`
	end
	for _, result in all.rows.attempt_result do
		if result.id == result_id then
			return `reached with its parts, the last of them by attempt {result.attempt_id}`
		end
	end
	return "reached with its parts"
end

--- Says how to look at the result and how to take it; or which attempt came nearest, where the goal was not reached.
local function say_result(root: state.Goal, offer: Offer, reached: boolean)
	if offer.commit ~= root.base_commit then
		show.autostarts(root.base_commit, offer.commit)
		local start = string.sub(root.base_commit, 1, 12)
		local merge = if offer.branch == root.branch then "git merge --no-ff" else "git merge"
		local what = if reached then "Merge it" else "It holds the parts that were reached. Merge them"
		ui.say(`Look at it: \`git diff {start} {offer.branch}\`. {what}: \`{merge} {offer.branch}\``)
	end
	if not reached then
		shots.tell_best(root)
	end
end

--- Ends a session: `result_id` is the result of the attempt that reached its root goal, or nil. Closes the goal by `close`, writes
--- the end, and tells the user. Returns the run's result.
function ending.finish(
	self: state.Session,
	root: state.Goal,
	result_id: number?,
	close: (status: string, detail: string) -> ()
): { [string]: any }
	local reached = result_id ~= nil
	local status = if reached then "success" else "failed"
	local detail = self.stop_reason or "not reached"
	if result_id ~= nil then
		local all = summary.read(self.name)
		detail = reached_how(all, all.rows.goal[1], result_id)
	end
	close(status, detail)
	local offer: Offer = { branch = root.branch, branch_id = root.branch_id, commit = git.commit_of(root.branch) :: string }
	if reached and self.params.squash and offer.commit ~= root.base_commit then
		offer = squash(self, root)
	end
	record.add(self.record, "session_end", {
		session_id = self.id,
		final_status = status,
		status_detail = detail,
		branch_id = offer.branch_id,
		commit_sha = offer.commit,
	})
	show.session(self.name)
	say_result(root, offer, reached)
	report.write(self.params, self.name)
	nietz.verdict(reached, detail)
	-- A session takes long: whoever began it is told where they are.
	nietz.notify({
		title = if reached then "Goal reached" else "Goal not reached",
		text = `{detail}\n{root.text}`,
		urgency = if reached then "normal" else "high",
	})
	return {
		session = self.name,
		status = status,
		detail = detail,
		branch = offer.branch,
		commit = offer.commit,
		attempts = self.record.count.attempt,
		tokens = self.tokens,
		cost = self.cost,
	}
end

return ending
