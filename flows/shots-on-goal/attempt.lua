--!strict
--- One attempt of one model at a goal. Whatever the model leaves in the worktree, what can be committed is committed on the branch,
--- and the end is recorded.

local checkout = require("./checkout")
local entries = require("../common/memory/entries")
local fenced = require("../common/fenced")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local messages = require("./messages")
local open_attempt = require("./open_attempt")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local state = require("./state")
local task = require("@nietz/task")
local template = require("@nietz/template")
local text = require("@nietz/text")
local validate = require("./validate")
local whereabouts = require("./whereabouts")

local attempt = {}

--- How much of what one command wrote, and of all of them, later prompts are told, in bytes.
local MOST_OUTPUT, MOST_OUTPUTS = 2000, 6000
--- How many failed tests are named, and how much of each message is told, in bytes.
local MOST_FAILURES, MOST_MESSAGE = 20, 200

--- Returns what a command that failed showed: the tests that failed where they are known, and the end of what it wrote.
local function describe_failure(run: validate.Run): string
	local parts = {}
	local report = run.report
	if report ~= nil and #report.failures > 0 then
		table.insert(parts, `\`{run.command}\`: {report.failed} of {report.total} tests failed:`)
		for index = 1, math.min(MOST_FAILURES, #report.failures) do
			local failure = report.failures[index]
			local first = string.split(failure.error_message, "\n")[1] or ""
			table.insert(parts, `  - {failure.test_name}: {text.truncate(first, MOST_MESSAGE)}`)
		end
		if #report.failures > MOST_FAILURES then
			table.insert(parts, `  - and {#report.failures - MOST_FAILURES} more`)
		end
	end
	table.insert(parts, `\`{run.command}\` wrote at last:\n{string.sub(run.output, -MOST_OUTPUT)}`)
	return table.concat(parts, "\n")
end

--- Returns which files an attempt has changed, what the commands that failed showed, and what the debug memory knows of
--- failures like that.
local function collect_evidence(
	self: state.Session,
	begun: open_attempt.OpenAttempt,
	from: string,
	commit: string,
	validation: validate.Validation?
): string
	local ok, paths = leftovers.try(function()
		return git.changed(from, commit)
	end)
	local parts = {}
	if ok then
		local shown = table.concat(paths, ", ", 1, math.min(#paths, 20)) .. (if #paths > 20 then " and more" else "")
		table.insert(parts, if #paths > 0 then `It changed {shown}.` else "It changed nothing.")
	end
	local failed, told, known = 0, 0, ""
	local runs: { validate.Run } = if validation then validation.runs else {}
	for _, run in runs do
		if run.exit == 0 then
			continue
		end
		failed += 1
		local shown = describe_failure(run)
		if told + #shown > MOST_OUTPUTS and failed > 1 then
			table.insert(parts, `\`{run.command}\` failed, too.`)
			continue
		end
		told += #shown
		table.insert(parts, shown)
		if self.params.memory and known == "" then
			local ran: git.Ran = { over = "exit", exit = run.exit, output = run.output }
			known = recall.for_model(recall.find_in_run(ran, begun.place.tree.path), {})
		end
	end
	if known ~= "" then
		table.insert(parts, "\n" .. known)
	end
	return table.concat(parts, " ")
end

--- Returns the first command of a validation that failed, or nil.
local function first_failure(runs: { validate.Run }): validate.Run?
	for _, run in runs do
		if run.exit ~= 0 then
			return run
		end
	end
	return nil
end

--- Puts a failed shot into the debug memory, with what the first command that failed showed.
local function remember(
	self: state.Session,
	begun: open_attempt.OpenAttempt,
	shot: { goal: string, detail: string, commit: string, tree: string, runs: { validate.Run } }
)
	local failed = first_failure(shot.runs)
	if not self.params.memory or failed == nil then
		return
	end
	entries.remember_shot({
		run = self.name,
		model = begun.model,
		goal = shot.goal,
		tried = shot.detail,
		start = begun.place.start,
		commit = shot.commit,
		tree = shot.tree,
		top = begun.place.tree.path,
		ran = { over = "exit", exit = failed.exit, output = failed.output },
	})
end

--- How much of the last diff the next prompt has, in bytes.
local MOST_DIFF = 20000

--- Returns what an attempt has left, for the prompt of the next one; nil where git cannot show it, or nothing has changed.
local function last_diff(id: number, from: string, commit: string): state.LastDiff?
	local ok, diff = leftovers.try(function()
		return git.diff(from, commit)
	end)
	if not ok or diff.patch == "" then
		return nil
	end
	local cut = diff.cut or #diff.patch > MOST_DIFF
	return { attempt = id, patch = fenced.block(text.truncate(diff.patch, MOST_DIFF), "diff"), cut = cut }
end

--- Returns whether what stands at a commit differs from the files that the goal began with.
local function differs(goal: state.Goal, commit: string): boolean
	local ok, paths = leftovers.try(function()
		return git.changed(goal.base_commit, commit)
	end)
	return if ok then #paths > 0 else commit ~= goal.base_commit
end

--- Tries to reach a goal by changing files. What differs then is validated, however the model has ended.
function attempt.implement(
	self: state.Session,
	goal: state.Goal,
	model: string,
	parents: { state.Goal },
	round: state.Round,
	temperature: number?
): open_attempt.Outcome
	local commands = open_attempt.commands_of(goal)
	local continued, last = checkout.continued(self, goal), goal.last_diff
	local place = whereabouts.of(goal, parents)
	local prompt = template.render("./prompts/implement.md", {
		goal = goal.text,
		layout = place.layout,
		parents = place.parents,
		parts = place.parts,
		steps = commands,
		protected = self.guards.globs,
		history = goal.history,
		continued = if continued then continued.attempt else 0,
		last_attempt = if last then last.attempt else 0,
		last_diff = if last then last.patch else "",
		last_cut = last ~= nil and last.cut,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local begun = open_attempt.begin(self, goal, model, "implementation", prompt)
	local ended, detail = open_attempt.run_model(self, begun, { temperature = temperature }, round)
	local status = ended
	local kept, committed = leftovers.try(function()
		return begun.place.tree:commit(messages.attempt(self, goal, begun, ended, detail), { author = self.params.author })
	end)
	local validation: validate.Validation? = nil
	local commit = if kept then committed.commit else begun.place.start
	local changed = kept and differs(goal, commit)
	if not kept then
		status, detail = "error", `the work cannot be committed: {committed}; {ended}: {detail}`
	elseif ended == "superseded" then
		status = "error"
	elseif ended == "completed" or changed then
		local in_time, why = open_attempt.unless_superseded(round, function()
			local done = validate.run(self, goal, begun.place.tree, begun.on_progress)
			if done.commit ~= nil then
				commit = done.commit
				changed = differs(goal, commit)
			end
			validation = done
			status, detail = validate.judge(self, goal, changed, done, ended, detail)
		end)
		if not in_time then
			ended, status, detail = "superseded", "error", why :: string
		end
	end
	if status == "success" and round.validated == nil then
		round.validated = begun.id
		if round.name ~= nil then
			task.stop(round.name)
		end
	end
	local result_id = open_attempt.record_result(self, begun, commit, status, detail)
	if validation ~= nil then
		validate.record_runs(self, validation, result_id)
	end
	local outcome = open_attempt.close(self, begun, result_id, status, detail, commit)
	outcome.validation, outcome.changed = validation, changed
	-- What could not be committed cannot be compared: its branch makes it differ from all others.
	outcome.fingerprint = `{if kept then committed.tree else begun.place.branch} {status} `
		.. (if validation then validation.fingerprint else "")
	if status ~= "success" then
		outcome.evidence = collect_evidence(self, begun, goal.base_commit, commit, validation)
		if ended ~= "superseded" then
			outcome.last_diff = last_diff(begun.id, goal.base_commit, commit)
		end
		if validation ~= nil then
			local runs = validation.runs
			remember(self, begun, { goal = goal.text, detail = detail, commit = commit, tree = committed.tree, runs = runs })
		end
	end
	return outcome
end

return attempt
