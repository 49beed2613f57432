--!strict
--- Debug memory: runs the tests, analyses the failures, fixes them, runs the tests again, and remembers what worked. This is the
--- entry; the modules are in `debug-memory/`.

local commands = require("./debug-memory/commands")
local environment = require("./debug-memory/environment")
local escalation = require("./debug-memory/escalation")
local git = require("@nietz/git")
local guards = require("./common/guards/guards")
local judged_past = require("./debug-memory/judged_past")
local leftovers = require("./common/leftovers")
local llm = require("@nietz/llm")
local loop = require("./debug-memory/loop")
local memory_files = require("./debug-memory/memory_files")
local nietz = require("@nietz")
local options = require("./debug-memory/options")
local random = require("@nietz/random")
local recall = require("./common/memory/recall")
local repo_listing = require("./common/repo_listing")
local report_blocks = require("./debug-memory/report_blocks")
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
	local known: { state.SetAside } = {}
	for _, name in params.wont_fix do
		table.insert(known, { test = name, resolution = "wont_fix", note = "left as it is: --wont-fix" })
	end
	return {
		params = params,
		limits = limits,
		model = model,
		doc = memory_files.new(random.uuid(), params.file, ctx.run, model),
		workplace = place,
		tree = git.worktree({ name = "debug", branch = branch }),
		branch = branch,
		start_commit = place.start,
		kept_commit = place.start,
		-- Here tests are part of the work: a fix brings one of its own, and what gets worse is found by comparing runs.
		guards = guards.new({ protect = params.protect, planted_only = true }, place.start, limits.validate),
		repo_listing = repo_listing.render(place.start),
		results = {},
		commits = {},
		trees = {},
		outputs = {},
		late = false,
		in_sandbox = environment.is_sandboxed(ctx),
		versions = {},
		fix_patterns = {},
		tries = {},
		failure_counts = {},
		set_aside = known,
		concerns = {},
		issues = {},
		recommendations = {},
		read_paths = {},
		senior = false,
		candidates = {},
		similar_past = {},
		known_patterns = {},
		tokens = 0,
		cost = 0,
		tool_calls = 0,
	}
end

--- Whether a session's fixes are offered whole: the tests pass with them, or nothing but skipped tests keeps them from it.
local function is_offered(ending: state.Ending): boolean
	return ending.status == "passed" or ending.trigger == "unverified"
end

--- Shows what was changed, and how to take as much of it as has held.
local function show_change(self: state.Session, commit: string, ending: state.Ending)
	local shown, diff = leftovers.try(function()
		return git.diff(self.start_commit, commit)
	end)
	if shown then
		ui.say("```diff\n" .. diff.patch .. (if diff.cut then "[cut here]\n" else "") .. "```")
	else
		ui.say(`Git cannot show the change: {diff}`)
	end
	local refused = ending.trigger == "coverage_threshold_unmet" or ending.trigger == "security_issue_found"
	local whole = is_offered(ending)
	if not whole and (refused or self.kept_commit == self.start_commit) then
		ui.say(`This is not for merging: {state.reason(ending)}. What was tried is on {self.branch}.`)
		return
	end
	local from = if whole then self.branch else self.kept_commit
	local what = if whole then "Take it" else "Take what has held, without what was tried after it"
	ui.say(`{what}: \`git merge --no-ff {from}\`, or as a change of your own: \`git diff {self.start_commit} {from} | git apply\``)
end

--- Says for scripts whether the tests pass now; an analysis alone decides nothing.
local function give_verdict(ending: state.Ending)
	if ending.status == "passed" then
		nietz.verdict(true)
	elseif ending.status == "escalated" or ending.trigger ~= nil then
		nietz.verdict(false, state.reason(ending))
	end
end

local function run(ctx: nietz.Context)
	local names = {}
	for name in commands.ALL do
		table.insert(names, name)
	end
	options.check(ctx.params, names)
	local archived = memory_files.archive_expired()
	if archived > 0 then
		ui.say(if archived == 1 then "1 old session is in the archive now." else `{archived} old sessions are in the archive now.`)
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
	local changed = commit ~= self.start_commit
	if changed then
		show_change(self, commit, ending)
	elseif removed then
		git.delete_branch(self.branch)
	end
	ui.say(if ending.status == "passed" then `✓ {state.reason(ending)}` else `✗ {ending.status}: {state.reason(ending)}`)
	if ending.status ~= "escalated" then
		ui.say(`All that the session knows: \`nietz run debug-memory show {self.doc.session_id}\``)
	end
	give_verdict(ending)
	return {
		session = self.doc.session_id,
		status = ending.status,
		trigger = ending.trigger,
		reason = state.reason(ending),
		branch = if changed or not removed then self.branch else nil,
		commit = commit,
		kept = if is_offered(ending) then commit else self.kept_commit,
		executions = #self.doc.executions,
		recalled = judged_past.count(self),
		report = state.own(self).report,
		tokens = self.tokens,
		cost = self.cost,
	}
end

local collections = table.clone(recall.collections)
collections.debug_memory_reports = escalation.REPORTS

local allowed = { "{test}", "{test} …", "{run}", "{setup}", environment.SANDBOX_ONLY }
for _, command in environment.commands() do
	table.insert(allowed, command)
end

return nietz.flow({
	name = "debug-memory",
	host_api = 2,
	summary = "Runs the tests, mends what fails, and remembers what worked",
	params = options.PARAMS,
	permissions = { llm = true, git = true, exec = allowed, exec_read = { "{setup_read}" }, notify = true },
	limits = { megabytes = 256, seconds = 10 },
	budget = { calls = 5000 },
	collections = collections,
	commands = commands.ALL,
	report = report_blocks.of,
	run = run,
})
