--!strict
--- Writes sessions into the debug memory: the one place where any mode makes and saves one. `debug-memory` keeps its session up
--- to date with `new` and `save`; a solved session of `debug` (`note_check`, `remember_solved`) and failed shots at a goal
--- (`remember_shot`) are written from what their commands really showed. Without results that a parser knows nothing is
--- written, and that is said; and no session ends because it could not be remembered.

local best_effort = require("../best_effort")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local git = require("@nietz/git")
local json = require("@nietz/json")
local migrations = require("./migrations")
local random = require("@nietz/random")
local report = require("./parsers/report")
local results = require("./results")
local store = require("./store")
local text = require("@nietz/text")

local entries = {}

--- The longest diff, and the most failures, that are kept of one execution; and the longest cause.
local MAX_DIFF, MAX_FAILURES, MAX_CAUSE = 65536, 100, 2000
--- The schema asks for so many characters of a cause and of a strategy.
entries.SHORTEST = 20

--- Returns a new session's document. `source` is the mode that writes it.
function entries.new(id: string, file: string?, run: string, model: string, source: string): documents.Document
	local now = clock.now()
	return {
		session_id = id,
		file_path = file or "unknown",
		created_at = now,
		updated_at = now,
		status = "in_progress",
		executions = json.array({}),
		metadata = { agent = model, task_id = run },
		nietz = { version = migrations.VERSION, source = source },
	}
end

--- Saves a session as it is now; what cannot be kept is said in the words of `explain`. Each save is the whole document, so
--- the next one makes up for one that failed. Returns whether it was kept.
function entries.save(doc: documents.Document, explain: (why: string) -> string): boolean
	doc.updated_at = clock.now()
	return best_effort.run(false, explain, function(): boolean
		documents.collection("debug_memory"):save(doc)
		return true
	end)
end

local function not_kept(why: string): string
	return store.text("not_kept", { why = why })
end

--- Returns the execution of a run of the tests. `tree` is git's id of the files that were run.
local function execution(attempt: number, read: results.Results, tree: string): documents.Document
	local failures = json.array(table.clone(read.failures))
	while #failures > MAX_FAILURES do
		table.remove(failures)
	end
	return {
		attempt = attempt,
		timestamp = clock.now(),
		code_hash = text.sha256(tree),
		environment = { runtime = read.runtime, runtime_version = read.runtime_version, test_framework = read.framework },
		test_results = {
			total = read.total,
			passed = read.passed,
			failed = read.failed,
			errors = read.errors,
			skipped = read.skipped,
			duration_ms = read.duration_ms,
			coverage_percent = read.coverage_percent,
		},
		failures = if #failures > 0 then failures else nil,
	}
end

--- Returns how many lines a patch adds and takes away, as `+5/-2 lines`.
local function diff_summary(patch: string): string
	local more, less = 0, 0
	for _, line in text.lines(patch) do
		if string.find(line, "^%+") ~= nil and string.find(line, "^%+%+%+ ") == nil then
			more += 1
		elseif string.find(line, "^%-") ~= nil and string.find(line, "^%-%-%- ") == nil then
			less += 1
		end
	end
	return `+{more}/-{less} lines`
end

--- Returns a change as the schema has a fix.
local function change(from: string, to: string, description: string, verification: string): documents.Document
	local patch = git.diff(from, to).patch
	return {
		description = description,
		diff_summary = diff_summary(patch),
		files_changed = json.array(git.changed(from, to)),
		diff = if patch ~= "" then string.sub(patch, 1, MAX_DIFF) else nil,
		verification = verification,
	}
end

--- Returns the file that a change or a failure is about: the first that was changed and is no test, else where it failed.
local function subject(changed: { string }, read: results.Results): string?
	for _, path in changed do
		if not report.is_test(path) then
			return path
		end
	end
	for _, failure in read.failures do
		local place = failure.source_location
		if place ~= nil then
			return place.file
		end
	end
	return changed[1]
end

--- A run of the developer's command: what it showed, of which files, and the commit that has them.
type Check = { read: results.Results, tree: string, commit: string }

--- Those of this run of the flow, in order.
local checks: { Check } = {}

--- Notes what a command of the developer's showed in a worktree of its own, before that is removed; `commit` is where the
--- worktree began.
function entries.note_check(ran: git.Ran, tree: git.Handle, commit: string)
	store.guarded(false, function(): boolean
		local read = results.read(ran, tree.path, nil, function(glob: string): { string }
			return tree:find(glob).paths
		end)
		-- What the command itself wrote is no part of the code.
		tree:restore()
		table.insert(checks, { read = read, tree = tree:commit("As it was run").tree, commit = commit })
		return true
	end)
end

--- What `debug` knows of a solved session.
export type Solved = {
	--- The session's own id, which is the memory's, too.
	id: string,
	run: string,
	model: string,
	problem: string,
	--- Why it happened, in the developer's words.
	cause: string,
}

--- Returns the session of a solved problem, or nil and why there is none.
local function solved_session(solved: Solved): (documents.Document?, string?)
	local known: { Check } = {}
	for _, check in checks do
		if check.read.framework ~= "unknown" and check.read.total > 0 then
			table.insert(known, check)
		end
	end
	local last = known[#known]
	if last == nil then
		return nil, store.text("no_results")
	elseif last.read.verdict ~= "passed" then
		return nil, store.text("not_passed")
	elseif #solved.cause < entries.SHORTEST then
		return nil, store.text("no_cause")
	end
	local before = known[#known - 1]
	local failing = before ~= nil and before.read.verdict == "failed"
	local first = if failing then before else last
	local changed = if failing then git.changed(first.commit, last.commit) else {}
	local doc = entries.new(solved.id, subject(changed, first.read), solved.run, solved.model, "debug")
	doc.status = "passed"
	doc.nietz.problem = solved.problem
	local told = execution(1, first.read, first.tree)
	told.analysis = {
		root_cause = string.sub(solved.cause, 1, MAX_CAUSE),
		fix_strategy = if #changed > 0
			then `the developer changed {table.concat(changed, ", ", 1, math.min(#changed, 10))}`
			else "the developer mended it, and what was changed was not seen",
	}
	table.insert(doc.executions, told)
	if failing then
		told.fix_applied = change(first.commit, last.commit, solved.cause, "passed")
		table.insert(doc.executions, execution(2, last.read, last.tree))
	end
	return doc
end

--- Writes a session that a developer solved, with the cause in their words, where their own command showed that it is solved.
function entries.remember_solved(solved: Solved)
	if #checks == 0 then
		return
	end
	best_effort.run(false, not_kept, function(): boolean
		local doc, why = solved_session(solved)
		if doc == nil then
			best_effort.say_once(not_kept(why or ""))
			return false
		elseif entries.save(doc, not_kept) then
			best_effort.say_once(store.text("kept", { path = documents.collection("debug_memory"):path(solved.id) }))
		end
		return true
	end)
end

--- A shot at a goal that did not reach it.
export type Shot = {
	run: string,
	model: string,
	goal: string,
	--- What the model said that it did, and how the shot ended.
	tried: string,
	--- The commits before and after it, and git's id of its files.
	start: string,
	commit: string,
	tree: string,
	--- The folder that it ran in, and what the last command of the validation did there.
	top: string,
	ran: git.Ran,
}

--- The session of this run's shots, once one of them is kept.
local of_shots: documents.Document? = nil

--- Returns the id of the session of this run's shots, or nil: what a run has just done is no past to it.
function entries.shots_session(): string?
	return if of_shots then of_shots.session_id else nil
end

--- Adds a failed shot to the run's session in the memory: what was tried, and what the validation showed then.
function entries.remember_shot(shot: Shot)
	best_effort.run(false, not_kept, function(): boolean
		local read = results.read(shot.ran, shot.top, nil, function(glob: string): { string }
			return git.files(shot.commit, glob).paths
		end)
		if read.framework == "unknown" or read.total == 0 then
			best_effort.say_once(not_kept(store.text("no_results")))
			return false
		elseif #read.failures == 0 or #git.changed(shot.start, shot.commit) == 0 then
			-- Nothing failed that a later failure could be like, or nothing was tried.
			return false
		end
		local fix = change(shot.start, shot.commit, `For: {shot.goal}\n\n{shot.tried}`, "failed")
		local doc = of_shots or entries.new(random.uuid(), subject(fix.files_changed, read), shot.run, shot.model, "shots-on-goal")
		doc.status = "failed"
		doc.nietz.problem = shot.goal
		local told = execution(#doc.executions + 1, read, shot.tree)
		told.fix_applied = fix
		table.insert(doc.executions, told)
		of_shots = doc
		return entries.save(doc, not_kept)
	end)
end

return entries
