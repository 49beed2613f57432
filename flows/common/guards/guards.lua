--!strict
--- Guards what a project's own commands prove: the tests that were there at the start, and what decides how they run. What work
--- has changed of it is put back before validation, and what tests ran before must run afterwards.

local counts = require("./counts")
local git = require("@nietz/git")
local globs = require("./globs")
local leftovers = require("../leftovers")
local named_paths = require("./named")
local nietz = require("@nietz")
local reaches = require("./reaches")
local results = require("../memory/results")
local rules = require("./rules")
local sections = require("./sections")
local test_bodies = require("./test_bodies")
local text = require("@nietz/text")
local twins = require("./twins")

local guards = {}

local RULES = rules.all

--- How many files one glob of git's can name together.
local MOST_NAMED = 20

export type Guards = {
	--- What prompts list as protected: files that the user or the commands name, and the usual places of the project's tests.
	globs: { string },
	start: string,
	commands: { string },
	--- What the user and the commands name.
	named: rules.Named,
	--- What the user lets the work change.
	may_change: { string },
	--- The names of code of tests, without their folders.
	test_files: { string },
	--- Files that the commands change by themselves, as they did before any work.
	rewritten: { [string]: boolean },
}

--- What was put back before validation.
export type Restored = {
	--- Files that were put back or removed, with what of them was changed.
	tampered: { string },
	--- Tests that the work has only added to: they were put back, too.
	put_back: { string },
	--- What of the tests does not hold any more although it could not be put back.
	weakened: { string },
	--- Tests that were added under the names of others.
	twins: { twins.Twin },
}

--- Returns the paths that exist in a commit, of those given.
local function existing(commit: string, paths: { string }): { [string]: boolean }
	local known: { [string]: boolean } = {}
	for from = 1, #paths, MOST_NAMED do
		local some = {}
		for at = from, math.min(#paths, from + MOST_NAMED - 1) do
			table.insert(some, (string.gsub(globs.exactly(paths[at]), ",", "\\,")))
		end
		for _, path in git.files(commit, if #some == 1 then some[1] else `\{{table.concat(some, ",")}}`).paths do
			known[path] = true
		end
	end
	return known
end

--- Returns the text of a file of a worktree; empty where there is none, or it is no text.
local function read(tree: git.Handle, path: string): string
	local ok, content = pcall(tree.read, tree, path)
	return if ok then content else ""
end

--- Returns those of a commit's guarded files that commands have changed in a worktree that stood at it. They are not changed back.
local function changed_by_commands(self: Guards, tree: git.Handle, commit: string): { string }
	local now = tree:commit("what commands have changed")
	local paths: { string } = {}
	if now.changed then
		local changed = git.changed(commit, now.commit)
		local known = existing(commit, changed)
		for _, path in changed do
			local kind = rules.kind_of(self.named, path)
			local is_new_and_planted = kind == "planted" and rules.is_shadow(path)
			local is_guarded = kind ~= "none" and kind ~= "source" and known[path]
			if (is_guarded or is_new_and_planted) and not globs.matches(self.may_change, path) then
				table.insert(paths, path)
			end
		end
		tree:move(commit)
	end
	return paths
end

--- Returns the guards of a session that starts from a commit and is validated by these commands. Of `params`, `protect` and
--- `tests_may_change` are read, and `planted_only`: where the tests are the work itself. `tree` is the worktree in which the
--- commands have run on the start commit, where there is one.
function guards.new(params: nietz.Values, start: string, validates: { string }, tree: git.Handle?): Guards
	local files, folders: { string } = table.clone(params.protect), {}
	for _, path in named_paths.paths(validates, start) do
		local found = git.files(start, path).paths
		if found[1] == path then
			table.insert(files, path)
		elseif named_paths.like_tests(path) then
			-- Any other folder that a command names has the code that is to change.
			table.insert(folders, path)
		end
	end
	local whole = not params.planted_only
	local shown = table.clone(files)
	table.move(folders, 1, #folders, #shown + 1, shown)
	if whole then
		local all = git.files(start).paths
		for _, some in { RULES.tests, RULES.test_names } do
			for _, glob in some do
				for _, path in all do
					if globs.matches({ glob }, path) then
						table.insert(shown, glob)
						break
					end
				end
			end
		end
	end
	local self: Guards = {
		test_files = {},
		globs = shown,
		start = start,
		commands = validates,
		named = { files = files, folders = folders, in_the_way = {}, whole = whole },
		may_change = params.tests_may_change or {},
		rewritten = {},
	}
	local all: { string } = if whole then git.files(start).paths else {}
	for _, path in all do
		local name = string.match(path, "[^/]*$") or path
		-- A name such as `mod.rs` is that of many files.
		if rules.is_code(path) and string.find(name, "[Tt]est") ~= nil and #name > 7 then
			local kind = rules.kind_of(self.named, path)
			if (kind == "tests" or kind == "named") and not table.find(self.test_files, name) then
				table.insert(self.test_files, name)
			end
		end
	end
	if tree ~= nil then
		-- Where that cannot be told, each change of theirs is one.
		local looked, changed = leftovers.try(function()
			return changed_by_commands(self, tree, start)
		end)
		local paths: { string } = if looked then changed else {}
		for _, path in paths do
			self.rewritten[path] = true
		end
		self.named.in_the_way = named_paths.in_the_way(validates, files, start, function(path: string): string
			return read(tree, path)
		end)
	end
	return self
end

--- Returns the parts of a patch by their files, and whether it is all of it.
local function parts_of(start: string, commit: string): ({ [string]: reaches.Part }, boolean)
	local diff = git.diff(start, commit)
	local parts: { [string]: reaches.Part } = {}
	local part: reaches.Part? = nil
	local before = ""
	for _, line in text.lines(diff.patch) do
		local sign, rest = string.sub(line, 1, 1), string.sub(line, 2)
		if string.find(line, "^diff %-%-git ") then
			part = nil
		elseif part == nil then
			local old, new = string.match(line, "^%-%-%- a/(.*)$"), string.match(line, "^%+%+%+ b/(.*)$")
			before = old or before
			if new ~= nil or line == "+++ /dev/null" then
				local made: reaches.Part = { added = {}, removes = new == nil, now = {} }
				parts[new or before], part = made, made
			end
		elseif sign == "+" then
			table.insert(part.added, rest)
			table.insert(part.now, { text = rest, added = true })
		elseif sign == "-" then
			part.removes = true
		elseif sign == " " then
			table.insert(part.now, { text = rest, added = false })
		elseif sign == "@" then
			table.insert(part.now, { text = "", added = false, gap = true })
		end
	end
	return parts, diff.cut
end

--- Returns what of the tests in these files is gone, or does less: in files that may be changed, what asserts nothing any more;
--- in others, each test that is not the same in any of the files.
local function weakened(before: { [string]: string }, after: { [string]: string }, may_change: { [string]: boolean }): { string }
	local now: { [string]: { test_bodies.Body } } = {}
	for path, source in after do
		for _, body in test_bodies.read(path, source) do
			now[body.name] = now[body.name] or {}
			table.insert(now[body.name], body)
		end
	end
	local said: { string } = {}
	for path, source in before do
		for _, body in test_bodies.read(path, source) do
			local same, asserts = false, 0
			local others: { test_bodies.Body } = now[body.name] or {}
			for _, other in others do
				same = same or other.code == body.code
				asserts = math.max(asserts, other.asserts)
			end
			if may_change[path] then
				if now[body.name] ~= nil and body.asserts > 0 and asserts == 0 then
					table.insert(said, `the test \`{body.name}\` of {path} asserts nothing any more`)
				end
			elseif not same then
				local what = if now[body.name] == nil then "gone" else "changed"
				table.insert(said, `the test \`{body.name}\` of {path} is {what}`)
			end
		end
	end
	table.sort(said)
	return said
end

--- What is looked at of one change.
type Change = {
	--- The paths by their guard; those that may be changed are in `free`.
	by_kind: { [string]: { string } },
	free: { string },
	--- Which of the changed paths there were at the start.
	existing: { [string]: boolean },
	parts: { [string]: reaches.Part },
	cut: boolean,
}

local function look(self: Guards, tree: git.Handle): Change
	local head = git.commit_of(tree.branch) :: string
	local change: Change = { by_kind = {}, free = {}, existing = {}, parts = {}, cut = false }
	local changed = git.changed(self.start, head)
	if #changed == 0 then
		return change
	end
	local asked = table.clone(changed)
	for _, path in changed do
		local hidden = rules.hidden_module(path)
		if hidden ~= nil then
			table.insert(asked, hidden)
		end
	end
	change.existing = existing(self.start, asked)
	for _, path in changed do
		local kind: string = rules.kind_of(self.named, path)
		local hidden = rules.hidden_module(path)
		if globs.matches(self.may_change, path) then
			kind = "free"
			table.insert(change.free, path)
		elseif hidden ~= nil and not change.existing[path] and change.existing[hidden] then
			local of_hidden = rules.kind_of(self.named, hidden)
			kind = if of_hidden == "none" or of_hidden == "source" then kind else "planted"
		end
		change.by_kind[kind] = change.by_kind[kind] or {}
		table.insert(change.by_kind[kind], path)
	end
	change.parts, change.cut = parts_of(self.start, head)
	return change
end

--- Returns the guarded parts of a file that differ, as a text; nil where none does.
local function changed_keys(self: Guards, path: string, exists: boolean, before: string, after: string): string?
	local section = rules.section_of(path) :: sections.Section
	if not exists and not section.guards_new then
		return nil
	end
	local names = sections.differences(section, before, after, self.commands)
	return if #names > 0 then `{path} ({table.concat(names, ", ")})` else nil
end

--- Returns the files of a worktree in which an expression matches.
local function files_with(tree: git.Handle, pattern: string): { { path: string, lines: number } }
	local found: { { path: string, lines: number } }? = tree:grep(pattern, nil, { by_file = true, most = 1000 }).files
	return if found ~= nil then found else {}
end

--- Returns those of these files that say themselves whether tests pass, and that a test names. The worktree has them as they were
--- at the start.
local function helpers(self: Guards, tree: git.Handle, paths: { string }): { string }
	local has: { [string]: boolean } = {}
	for _, file in files_with(tree, RULES.helpers.has) do
		has[file.path] = true
	end
	local found: { string } = {}
	for _, path in paths do
		if not has[path] and not globs.matches(RULES.helpers.names, path) then
			continue
		end
		local folder, base = string.match(`/{path}`, "([^/]*)/([^/]+)$")
		local stem = string.match(base or path, "^([%w_%-]+)") or ""
		local name = if stem == "index" or stem == "mod" or stem == "__init__" then folder or "" else stem
		if name == "" then
			continue
		end
		for _, file in files_with(tree, `\\b{name}\\b`) do
			local kind = rules.kind_of(self.named, file.path)
			if file.path ~= path and (kind == "tests" or kind == "named" or kind == "config") then
				table.insert(found, path)
				break
			end
		end
	end
	return found
end

--- The texts of files at the start and as they are.
type Texts = { before: { [string]: string }, after: { [string]: string }, helpers: { string } }

--- Reads files at the start and as they are in the worktree, which stays as it is, and finds those of `others` that are helpers.
local function both(self: Guards, tree: git.Handle, paths: { string }, others: { string }): Texts
	local texts: Texts = { before = {}, after = {}, helpers = {} }
	if #paths + #others == 0 then
		return texts
	end
	local exact: { string } = {}
	for _, path in paths do
		texts.after[path] = read(tree, path)
		table.insert(exact, globs.exactly(path))
	end
	for _, path in others do
		table.insert(exact, globs.exactly(path))
	end
	tree:restore({ from = self.start, globs = exact })
	for _, path in paths do
		texts.before[path] = read(tree, path)
	end
	if #others > 0 then
		texts.helpers = helpers(self, tree, others)
	end
	tree:restore()
	return texts
end

--- Whether a file that is called like one of tests has anything of a test in it.
local function has_tests(path: string, source: string): boolean
	return #test_bodies.read(path, source) > 0 or text.search(source, RULES.signs) ~= nil
end

--- Returns the entries of lists, one list after the other.
local function joined(lists: { { string } }): { string }
	local all: { string } = {}
	for _, some in lists do
		table.move(some, 1, #some, #all + 1, all)
	end
	return all
end

--- Restores a worktree to what is committed, with what is guarded as it was at the start. That is not committed.
function guards.put_back(self: Guards, tree: git.Handle): Restored
	local restored: Restored = { tampered = {}, put_back = {}, weakened = {}, twins = {} }
	tree:restore()
	local change = look(self, tree)
	local function of(kind: string): { string }
		return change.by_kind[kind] or {}
	end
	local helper_paths: { string } = {}
	local code: { string } = if self.named.whole then joined({ of("none"), of("source") }) else {}
	for _, path in code do
		if change.existing[path] and (rules.is_code(path) or string.find(path, "%.sh$") ~= nil) then
			table.insert(helper_paths, path)
		end
	end
	local texts = both(self, tree, joined({ of("sections"), of("source"), of("named"), of("tests"), change.free }), helper_paths)
	local back: { string }, is_back: { [string]: boolean } = {}, {}
	local function put_back(path: string)
		is_back[path] = true
		table.insert(back, globs.exactly(path))
	end
	for _, path in joined({ of("config"), texts.helpers }) do
		put_back(path)
		table.insert(restored.tampered, path)
	end
	for _, path in of("planted") do
		-- A project may have a module of such a name.
		if not change.existing[path] or (globs.matches(RULES.planted, path) and not rules.is_shadow(path)) then
			put_back(path)
			table.insert(restored.tampered, path)
		end
	end
	local is_test: { [string]: boolean } = {}
	for _, path in joined({ of("tests"), of("named") }) do
		is_test[path] = true
		if not change.existing[path] then
			continue
		elseif rules.kind_of(self.named, path) == "named" and not has_tests(path, texts.before[path]) then
			is_test[path] = false
			continue
		end
		put_back(path)
		local part = change.parts[path]
		local only_adds = part ~= nil and not part.removes and not change.cut
		if only_adds and text.search(table.concat(part.added, "\n"), RULES.hides) == nil then
			table.insert(restored.put_back, path)
		else
			table.insert(restored.tampered, path)
		end
	end
	for _, path in of("sections") do
		local said = changed_keys(self, path, change.existing[path], texts.before[path], texts.after[path])
		if said ~= nil then
			put_back(path)
			table.insert(restored.tampered, said)
		end
	end
	if self.named.whole then
		local may_change: { [string]: boolean }, added: { [string]: boolean } = {}, {}
		for _, path in change.free do
			may_change[path], is_test[path] = true, true
		end
		for path in change.parts do
			added[path] = not change.existing[path]
		end
		for path in is_back do
			texts.before[path], texts.after[path] = nil, nil
		end
		restored.weakened = weakened(texts.before, texts.after, may_change)
		restored.twins = if #self.may_change > 0 then {} else twins.find(texts.before, texts.after, added)
		local said = reaches.find(change.parts, is_back, function(path: string): boolean
			return is_test[path] == true
		end, self.test_files)
		table.move(said, 1, #said, #restored.weakened + 1, restored.weakened)
	end
	if #back > 0 then
		tree:restore({ from = self.start, globs = back })
	end
	return restored
end

--- Puts back what is guarded, and commits that: the attempt's version stays in the branch's history, and what can be merged has
--- the original files. Returns the commit, where there was something to put back.
function guards.restore(self: Guards, tree: git.Handle): (Restored, string?)
	local restored = guards.put_back(self, tree)
	local changed = #restored.tampered + #restored.put_back > 0
	return restored, if changed then tree:commit("Protected files as they were").commit else nil
end

--- Returns what of the guarded files commands have changed while they validated a commit in a worktree, each as a part of a
--- sentence. The worktree stands at the commit again.
function guards.rewritten(self: Guards, tree: git.Handle, commit: string): { string }
	local said: { string } = {}
	local changed: { string } = if self.named.whole then changed_by_commands(self, tree, commit) else {}
	for _, path in changed do
		if not self.rewritten[path] then
			table.insert(said, `{path} was changed while the commands ran`)
		end
	end
	return said
end

--- What the commands said before any work: of their tests, and as a whole; and whether one failed.
export type Before = {
	reports: { [string]: results.Results },
	outputs: { [string]: string },
	failed: (command: string) -> boolean,
}

--- Returns what of the tests that ran before, by the command, is gone or skipped now, each as a part of a sentence; also where a
--- command that exited with 0 executed none, or some of them failed, or where it did nothing.
function guards.compare(self: Guards, before: Before, runs: { counts.Run }, added: { twins.Twin }): { string }
	local said = counts.compare(before.reports, runs, #self.may_change > 0)
	for _, more in { counts.idle(runs, before.failed), twins.compare(added, before.reports, before.outputs, runs) } do
		table.move(more, 1, #more, #said + 1, said)
	end
	return said
end

--- The most files that are named as binary, and the most pages of a change that are gone through for them.
local MOST_BINARIES, MOST_PAGES = 20, 50

--- Returns what a change brings that nobody can read in a diff, each as a line; beside what `git.brings` tells.
function guards.notices(start: string, commit: string): { string }
	local said: { string } = {}
	local change = { from = start, to = commit } :: git.Change
	for _ = 1, MOST_PAGES do
		local ok, page = leftovers.try(function()
			return git.hunks(change)
		end)
		if not ok then
			table.insert(said, `git cannot show which files are binary: {page}`)
			break
		end
		for _, file in page.files do
			change.after = file.path
			if file.binary and file.kind ~= "deleted" then
				table.insert(said, `\`{file.path}\` is binary`)
			end
		end
		if not page.cut or #page.files == 0 or #said >= MOST_BINARIES then
			break
		end
	end
	return said
end

return guards
