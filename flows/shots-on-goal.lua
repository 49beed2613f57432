--!strict
--- Shots on goal: two models take turns at a goal in git worktrees, break it down where an attempt fails, and merge what
--- validates. Every step is a row that can be queried later. This is the entry; the modules are in `shots-on-goal/`.

local clean = require("./shots-on-goal/clean")
local ending = require("./shots-on-goal/ending")
local goal = require("./shots-on-goal/goal")
local nietz = require("@nietz")
local options = require("./shots-on-goal/options")
local progress = require("./shots-on-goal/progress")
local query = require("./shots-on-goal/query")
local recall = require("./common/memory/recall")
local record = require("./shots-on-goal/record")
local report = require("./shots-on-goal/report")
local report_blocks = require("./shots-on-goal/report_blocks")
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

for name, collection in report.COLLECTIONS do
	collections[name] = collection
end

--- Returns the session that was named, or the latest.
local function session_of(params: nietz.Values): string
	local session = record.find(params.session)
	if session == nil then
		nietz.fail("there is no such session", "nietz run shots-on-goal list")
	end
	return session :: string
end

local function run(ctx: nietz.Context)
	if ctx.params.list then
		return show.list()
	end
	options.require_goal(ctx.params)
	report.require_unused(ctx.params)
	local self, root = start.session(ctx)
	local result_id = goal.reach(self, root, 1, {})
	progress.clear()
	workplace.finish(self.workplace)
	return ending.finish(self, root, result_id, function(status: string, detail: string)
		goal.close(self, root, status, detail)
	end)
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
				show.session(session_of(ctx.params))
				return nil
			end,
		},
		report = {
			summary = "Writes a session as Markdown for a pull request, and its change as a patch",
			params = {
				session = { type = "string", positional = true, help = "The session [default: the latest]" },
				report = { type = "string", help = "A new file for the report [default: it is shown]" },
				patch = { type = "string", help = "A new file for the patch from the start to the result" },
			},
			run = function(ctx: nietz.Context)
				local session = session_of(ctx.params)
				report.require_unused(ctx.params)
				if ctx.params.report == nil and ctx.params.patch == nil then
					ui.say(report.markdown(session))
				end
				report.write(ctx.params, session)
				return nil
			end,
		},
		clean = {
			summary = "Removes the branches and worktrees that sessions have left, after a list of them",
			params = clean.PARAMS,
			run = clean.run,
		},
	},
	report = report_blocks.of,
	run = run,
})
