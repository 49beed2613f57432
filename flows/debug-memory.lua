--!strict
--- Debug memory: runs the tests, analyses the failures, fixes them, runs the tests again, and remembers what worked. This is the
--- entry; the modules are in `debug-memory/`.

local commands = require("./debug-memory/commands")
local git = require("@nietz/git")
local leftovers = require("./common/leftovers")
local llm = require("@nietz/llm")
local loop = require("./debug-memory/loop")
local memory_files = require("./debug-memory/memory_files")
local nietz = require("@nietz")
local options = require("./debug-memory/options")
local programs = require("./common/programs")
local random = require("@nietz/random")
local recall = require("./common/memory/recall")
local repo_listing = require("./common/repo_listing")
local state = require("./debug-memory/state")
local ui = require("@nietz/ui")
local workplace = require("./common/workplace")

local function begin(ctx: nietz.Context): state.Session
	local params = ctx.params
	local limits = options.tool_limits(params)
	local place = workplace.new(params, ctx.run)
	local branch = `nietz/{ctx.run}`
	git.branch(branch, place.start)
	local model = llm.model()
	return {
		params = params,
		limits = limits,
		model = model,
		doc = memory_files.new(random.uuid(), params.file, ctx.run, model),
		workplace = place,
		tree = git.worktree({ name = "debug", branch = branch }),
		branch = branch,
		start_commit = place.start,
		protected_globs = programs.protected_globs({ protect = params.protect, validate = limits.validate }, place.start),
		repo_listing = repo_listing.render(place.start),
		results = {},
		commits = {},
		fix_patterns = {},
		failure_counts = {},
		similar_past = {},
		known_patterns = {},
		tokens = 0,
		cost = 0,
		tool_calls = 0,
	}
end

--- Shows what was changed, and how to take it.
local function show_change(self: state.Session, commit: string)
	local shown, diff = leftovers.try(function()
		return git.diff(self.start_commit, commit)
	end)
	if shown then
		ui.say("```diff\n" .. diff.patch .. (if diff.cut then "[cut here]\n" else "") .. "```")
	else
		ui.say(`Git cannot show the change: {diff}`)
	end
	ui.say(
		`Take it: \`git merge --no-ff {self.branch}\`, or as a change of your own: \`git diff {self.start_commit} {self.branch} | git apply\``
	)
end

local function run(ctx: nietz.Context)
	options.require_command(ctx.params)
	local archived = memory_files.archive_expired()
	if archived > 0 then
		ui.say(`{archived} old sessions are in the archive now.`)
	end
	local self = begin(ctx)
	local ending = loop.run(self)
	local removed, why = leftovers.try(function()
		return self.tree:remove({ discard = true })
	end)
	if not removed then
		ui.say(`The worktree {self.tree.path} stays: {why}`)
	end
	workplace.finish(self.workplace)
	local commit = git.commit_of(self.branch) :: string
	if commit ~= self.start_commit then
		show_change(self, commit)
	end
	ui.say(`{if ending.status == "passed" then "✓" else "✗"} {ending.status}: {ending.reason}`)
	return {
		session = self.doc.session_id,
		status = ending.status,
		reason = ending.reason,
		branch = self.branch,
		commit = commit,
		executions = #self.doc.executions,
		recalled = #self.similar_past,
		tokens = self.tokens,
		cost = self.cost,
	}
end

return nietz.flow({
	name = "debug-memory",
	host_api = 2,
	summary = "Runs the tests, mends what fails, and remembers what worked",
	params = options.PARAMS,
	permissions = { llm = true, git = true, exec = { "{test}", "{run}", "{setup}" }, exec_read = { "{setup_read}" } },
	limits = { megabytes = 256, seconds = 10 },
	budget = { calls = 5000 },
	collections = recall.collections,
	commands = commands.ALL,
	run = run,
})
