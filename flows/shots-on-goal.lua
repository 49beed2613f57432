--!strict
--- Shots on goal: two models take turns at a goal in git worktrees, break it down where an attempt fails, and merge what
--- validates. Every step is a row that can be queried later. This is the entry; the modules are in `shots-on-goal/`.

local git = require("@nietz/git")
local goal = require("./shots-on-goal/goal")
local nietz = require("@nietz")
local options = require("./shots-on-goal/options")
local progress = require("./shots-on-goal/progress")
local query = require("./shots-on-goal/query")
local recall = require("./common/memory/recall")
local record = require("./shots-on-goal/record")
local shots = require("./shots-on-goal/shots")
local show = require("./shots-on-goal/show")
local start = require("./shots-on-goal/start")
local tables = require("./shots-on-goal/tables")
local ui = require("@nietz/ui")
local workplace = require("./common/workplace")

--- The session's tables, and the debug memory, which takes the shots that failed.
local collections = table.clone(tables.collections)
for name, collection in recall.collections do
	collections[name] = collection
end

local function run(ctx: nietz.Context)
	if ctx.params.list then
		return show.list()
	end
	options.require_goal(ctx.params)
	local self, root = start.session(ctx)
	local reached = goal.reach(self, root, 1, {}) ~= nil
	local commit = git.commit_of(root.branch) :: string
	local detail = if reached then `reached with attempt {self.record.count.attempt}` else self.stop_reason or "not reached"
	goal.close(self, root, if reached then "success" else "failed", detail)
	progress.clear()
	record.add(self.record, "session_end", {
		session_id = self.id,
		final_status = if reached then "success" else "failed",
		status_detail = detail,
		branch_id = root.branch_id,
		commit_sha = commit,
	})
	workplace.finish(self.workplace)
	show.session(self.name)
	shots.tell_best(root)
	if commit ~= root.base_commit then
		show.autostarts(root.base_commit, commit)
		ui.say(`Look at it: \`git log -p {root.base_commit}..{root.branch}\`. Merge it: \`git merge --no-ff {root.branch}\``)
	end
	-- A session takes long: whoever began it is told where they are.
	nietz.notify {
		title = if reached then "Goal reached" else "Goal not reached",
		text = `{detail}\n{ctx.params.goal}`,
		urgency = if reached then "normal" else "high",
	}
	return {
		session = self.name,
		status = if reached then "success" else "failed",
		detail = detail,
		branch = root.branch,
		commit = commit,
		attempts = self.record.count.attempt,
		tokens = self.tokens,
		cost = self.cost,
	}
end

return nietz.flow({
	name = "shots-on-goal",
	host_api = 2,
	summary = "Works on a goal in git worktrees with two models in turn, and keeps a record that can be asked",
	params = options.PARAMS,
	permissions = {
		llm = true,
		git = true,
		exec = { "{validate}", "{validate} …", "{done_when}", "{run}", "{setup}", "sandbox:sh" },
		exec_read = { "{setup_read}" },
		notify = true,
	},
	limits = { megabytes = 256, seconds = 10 },
	budget = { calls = 10000 },
	collections = collections,
	commands = {
		query = {
			summary = "Asks the latest session in SQL",
			reads_only = true,
			params = query.PARAMS,
			run = query.run,
		},
		list = {
			summary = "Lists the sessions of this workspace",
			reads_only = true,
			run = function()
				show.list()
				return nil
			end,
		},
		show = {
			summary = "Shows a session: its goals, attempts and what they cost",
			reads_only = true,
			params = { session = { type = "string", positional = true, help = "The session [default: the latest]" } },
			run = function(ctx: nietz.Context)
				local session = record.find(ctx.params.session)
				if session == nil then
					nietz.fail("there is no such session", "nietz run shots-on-goal list")
				end
				show.session(session :: string)
				return nil
			end,
		},
	},
	run = run,
})
