--!strict
--- One attempt of one model at a goal. Whatever the model leaves in the worktree, what can be committed is committed on the branch,
--- and the end is recorded.

local entries = require("../common/memory/entries")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local messages = require("./messages")
local open_attempt = require("./open_attempt")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local state = require("./state")
local template = require("@nietz/template")
local validate = require("./validate")

local attempt = {}

--- Returns which files an attempt has changed, the end of what the command that failed wrote, and what the debug
--- memory knows of failures like that.
local function collect_evidence(
	self: state.Session,
	begun: open_attempt.OpenAttempt,
	commit: string,
	validation: validate.Validation?
): string
	local start = begun.place.start
	local ok, paths = leftovers.try(function()
		return git.changed(start, commit)
	end)
	local parts = {}
	if ok then
		local shown = table.concat(paths, ", ", 1, math.min(#paths, 20)) .. (if #paths > 20 then " and more" else "")
		table.insert(parts, if #paths > 0 then `It changed {shown}.` else "It changed nothing.")
	end
	local last = if validation then validation.runs[#validation.runs] else nil
	if last ~= nil and last.exit ~= 0 then
		table.insert(parts, `\`{last.command}\` wrote at last:\n{string.sub(last.output, -2000)}`)
		if self.params.memory then
			local ran: git.Ran = { over = "exit", exit = last.exit, output = last.output }
			local known = recall.for_model(recall.find_in_run(ran, begun.place.tree.path), {})
			if known ~= "" then
				table.insert(parts, "\n" .. known)
			end
		end
	end
	return table.concat(parts, " ")
end

--- Puts a failed shot into the debug memory, with what the last command of its validation showed.
local function remember(
	self: state.Session,
	begun: open_attempt.OpenAttempt,
	shot: { goal: string, detail: string, commit: string, tree: string, runs: { validate.Run } }
)
	local last = shot.runs[#shot.runs]
	if not self.params.memory or last == nil or last.exit == 0 then
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
		ran = { over = "exit", exit = last.exit, output = last.output },
	})
end

--- Tries to reach a goal by changing files.
function attempt.implement(self: state.Session, goal: state.Goal, model: string, parents: { state.Goal }): open_attempt.Outcome
	local commands = open_attempt.commands_of(goal)
	local prompt = template.render("./prompts/implement.md", {
		goal = goal.text,
		layout = self.repo_listing,
		parents = list.map(parents, function(parent)
			return parent.text
		end),
		steps = commands,
		protected = self.protected_globs,
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local begun = open_attempt.begin(self, goal, model, "implementation", prompt)
	local status, detail = open_attempt.run_model(self, begun, {})
	local kept, committed = leftovers.try(function()
		return begun.place.tree:commit(messages.attempt(self, goal, begun, status, detail), { author = self.params.author })
	end)
	local validation: validate.Validation? = nil
	local commit = if kept then committed.commit else begun.place.start
	if not kept then
		status, detail = "error", `the work cannot be committed: {committed}; {status}: {detail}`
	elseif status == "completed" then
		local done = validate.run(self, goal, begun.place.tree, begun.on_progress)
		validation, commit = done, done.commit or commit
		local ok, paths = leftovers.try(function()
			return git.changed(goal.base_commit, commit)
		end)
		local changed = if ok then #paths > 0 else commit ~= goal.base_commit
		status, detail = validate.judge(self, goal, changed, done, detail)
	end
	local result_id = open_attempt.record_result(self, begun, commit, status, detail)
	if validation ~= nil then
		validate.record_runs(self, validation, result_id)
	end
	local outcome = open_attempt.close(self, begun, result_id, status, detail, commit)
	-- What could not be committed cannot be compared: its branch makes it differ from all others.
	outcome.fingerprint = `{if kept then committed.tree else begun.place.branch} {status} `
		.. (if validation then validation.fingerprint else "")
	outcome.evidence = collect_evidence(self, begun, commit, validation)
	if validation ~= nil and status ~= "success" then
		remember(self, begun, { goal = goal.text, detail = detail, commit = commit, tree = committed.tree, runs = validation.runs })
	end
	return outcome
end

return attempt
