--!strict
--- Guards what a project's own commands prove: the tests that were there at the start, and what decides how they run. What work
--- has changed of it is put back before validation, and what tests ran before must run afterwards.

local counts = require("./counts")
local git = require("@nietz/git")
local globs = require("./globs")
local leftovers = require("../leftovers")
local named_paths = require("./named")
local nietz = require("@nietz")
local results = require("../memory/results")
local sections = require("./sections")
local test_bodies = require("./test_bodies")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local guards = {}

--- What `protected.yaml` says.
type Rules = {
	tests: { string },
	config: { string },
	planted: { string },
	shadows: { runners: { string }, folders: { string }, modules: { string } },
	sections: { sections.Section },
	reaches: { string },
	exits: string,
	forged: string,
	hides: string,
}

local RULES = yaml.load("./protected.yaml") :: Rules

--- How many files one glob of git's can name together.
local MOST_NAMED = 20

export type Guards = {
	--- What prompts list as protected: files that the user or the commands name, and the usual places of the project's tests.
	globs: { string },
	start: string,
	commands: { string },
	--- Files that the user and the commands name, which are put back whatever they are.
	named: { string },
	--- Folders that the commands name: new files there are welcome.
	folders: { string },
	--- What the user lets the work change.
	may_change: { string },
	--- Whether tests and their settings are guarded, or only what nobody writes by hand.
	whole: boolean,
}

--- What was put back before validation.
export type Restored = {
	--- Files that were put back or removed, with what of them was changed.
	tampered: { string },
	--- Tests that the work has only added to: they were put back, too.
	put_back: { string },
	--- What of the tests does not hold any more although it could not be put back.
	weakened: { string },
}

--- Whether a path is a new module in the place of one that a runner needs.
local function is_shadow(path: string): boolean
	local base = string.match(path, "([%w_]+)%.pyc?$") or ""
	local package = string.match(path, "([%w_]+)/__init__%.pyc?$") or ""
	for _, runner in RULES.shadows.runners do
		if base == runner or package == runner then
			return true
		end
	end
	for _, folder in RULES.shadows.folders do
		if string.sub(path, 1, #folder) == folder then
			local rest = string.sub(path, #folder + 1)
			local name = string.match(rest, "^([%w_]+)%.pyc?$")
				or string.match(rest, "^([%w_]+)/__init__%.py$")
				or string.match(rest, "^([%w_]+)%.[%w_%-]+%.so$")
				or string.match(rest, "^([%w_]+)%.so$")
			if name ~= nil and table.find(RULES.shadows.modules, name) ~= nil then
				return true
			end
		end
	end
	return false
end

--- Returns the paths that exist at the start, of those given.
local function existing(self: Guards, paths: { string }): { [string]: boolean }
	local known: { [string]: boolean } = {}
	for from = 1, #paths, MOST_NAMED do
		local some = {}
		for at = from, math.min(#paths, from + MOST_NAMED - 1) do
			table.insert(some, (string.gsub(globs.exactly(paths[at]), ",", "\\,")))
		end
		for _, path in git.files(self.start, if #some == 1 then some[1] else `\{{table.concat(some, ",")}}`).paths do
			known[path] = true
		end
	end
	return known
end

--- Returns the guards of a session that starts from a commit and is validated by these commands. Of `params`, `protect` and
--- `tests_may_change` are read, and `planted_only`: where the tests are the work itself.
function guards.new(params: nietz.Values, start: string, validates: { string }): Guards
	local named, folders: { string } = table.clone(params.protect), {}
	for _, path in named_paths.paths(validates, start) do
		local found = git.files(start, path).paths
		if found[1] == path then
			table.insert(named, path)
		elseif named_paths.like_tests(path) then
			-- Any other folder that a command names has the code that is to change.
			table.insert(folders, path)
		end
	end
	local whole = not params.planted_only
	local shown = table.clone(named)
	table.move(folders, 1, #folders, #shown + 1, shown)
	if whole then
		local files = git.files(start).paths
		for _, glob in RULES.tests do
			for _, path in files do
				if globs.matches({ glob }, path) then
					table.insert(shown, glob)
					break
				end
			end
		end
	end
	return {
		globs = shown,
		start = start,
		commands = validates,
		named = named,
		folders = folders,
		may_change = params.tests_may_change or {},
		whole = whole,
	}
end

--- What a change adds to a file, and whether it takes anything away.
type Part = { added: { string }, removes: boolean }

--- Returns the parts of a patch by their files, and whether it is all of it.
local function parts_of(start: string, commit: string): ({ [string]: Part }, boolean)
	local diff = git.diff(start, commit)
	local parts: { [string]: Part } = {}
	local part: Part? = nil
	local before = ""
	for _, line in text.lines(diff.patch) do
		if string.find(line, "^diff %-%-git ") then
			part = nil
		elseif part == nil then
			local old, new = string.match(line, "^%-%-%- a/(.*)$"), string.match(line, "^%+%+%+ b/(.*)$")
			before = old or before
			if new ~= nil or line == "+++ /dev/null" then
				local made: Part = { added = {}, removes = new == nil }
				parts[new or before], part = made, made
			end
		elseif string.sub(line, 1, 1) == "+" then
			table.insert(part.added, string.sub(line, 2))
		elseif string.sub(line, 1, 1) == "-" then
			part.removes = true
		end
	end
	return parts, diff.cut
end

--- Returns the text of a file of a worktree; empty where there is none, or it is no text.
local function read(tree: git.Handle, path: string): string
	local ok, content = pcall(tree.read, tree, path)
	return if ok then content else ""
end

local function section_of(path: string): sections.Section?
	local base = string.match(path, "([^/]+)$")
	for _, section in RULES.sections do
		if section.file == base then
			return section
		end
	end
	return nil
end

--- What kind of guard a changed path has.
local function kind_of(self: Guards, path: string): string
	if globs.matches(self.named, path) then
		return "config"
	elseif is_shadow(path) or globs.matches(RULES.planted, path) then
		return "planted"
	elseif not self.whole then
		return if globs.matches(self.folders, path) then "config" else "none"
	elseif globs.matches(RULES.config, path) then
		return "config"
	elseif globs.matches(RULES.tests, path) or globs.matches(self.folders, path) then
		return "tests"
	elseif section_of(path) ~= nil then
		return "sections"
	end
	return if string.find(path, "%.rs$") then "source" else "none"
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

--- Returns what the added text does to the runner itself.
local function reaches(parts: { [string]: Part }, restored: { [string]: boolean }): { string }
	local said: { string } = {}
	local ends, forges = nil :: string?, nil :: string?
	for path, part in parts do
		local added = table.concat(part.added, "\n")
		if restored[path] or added == "" then
			continue
		end
		for _, pattern in RULES.reaches do
			local found = text.search(added, pattern)
			if found ~= nil then
				table.insert(said, `{path} changes what tests run with: \`{text.trim(found.text)}\``)
				break
			end
		end
		ends = ends or (if text.search(added, RULES.exits) ~= nil then path else nil)
		forges = forges or (if text.search(added, RULES.forged) ~= nil then path else nil)
	end
	if ends ~= nil and forges ~= nil then
		table.insert(said, `{forges} writes what a runner would write, and {ends} ends the process early`)
	end
	table.sort(said)
	return said
end

--- What is looked at of one change.
type Change = {
	--- The paths by their guard; those that may be changed are in `free`.
	by_kind: { [string]: { string } },
	free: { string },
	existing: { [string]: boolean },
	parts: { [string]: Part },
	cut: boolean,
}

local function look(self: Guards, tree: git.Handle): Change
	local head = git.commit_of(tree.branch) :: string
	local change: Change = { by_kind = {}, free = {}, existing = {}, parts = {}, cut = false }
	local changed = git.changed(self.start, head)
	if #changed == 0 then
		return change
	end
	local tests: { string } = {}
	for _, path in changed do
		local kind = kind_of(self, path)
		if globs.matches(self.may_change, path) then
			kind = "none"
			table.insert(change.free, path)
		end
		change.by_kind[kind] = change.by_kind[kind] or {}
		table.insert(change.by_kind[kind], path)
		if kind ~= "none" and kind ~= "config" then
			table.insert(tests, path)
		end
	end
	change.existing = existing(self, tests)
	change.parts, change.cut = parts_of(self.start, head)
	return change
end

--- Returns the guarded parts of a file that differ, as a text; nil where none does.
local function changed_keys(self: Guards, path: string, exists: boolean, before: string, after: string): string?
	local section = section_of(path) :: sections.Section
	if not exists and not section.guards_new then
		return nil
	end
	local names = sections.differences(section, before, after, self.commands)
	return if #names > 0 then `{path} ({table.concat(names, ", ")})` else nil
end

--- Reads files at the start and as they are in the worktree, which stays as it is.
local function both(self: Guards, tree: git.Handle, paths: { string }): ({ [string]: string }, { [string]: string })
	local before: { [string]: string }, after: { [string]: string } = {}, {}
	if #paths == 0 then
		return before, after
	end
	local exact: { string } = {}
	for _, path in paths do
		after[path] = read(tree, path)
		table.insert(exact, globs.exactly(path))
	end
	tree:restore({ from = self.start, globs = exact })
	for _, path in paths do
		before[path] = read(tree, path)
	end
	tree:restore()
	return before, after
end

--- Restores a worktree to what is committed, with what is guarded as it was at the start. That is not committed.
function guards.put_back(self: Guards, tree: git.Handle): Restored
	local restored: Restored = { tampered = {}, put_back = {}, weakened = {} }
	tree:restore()
	local change = look(self, tree)
	local function of(kind: string): { string }
		return change.by_kind[kind] or {}
	end
	local compared: { string } = table.clone(of("sections"))
	table.move(of("source"), 1, #of("source"), #compared + 1, compared)
	table.move(change.free, 1, #change.free, #compared + 1, compared)
	local before, after = both(self, tree, compared)
	local back: { string }, is_back: { [string]: boolean } = {}, {}
	local function put_back(path: string)
		is_back[path] = true
		table.insert(back, globs.exactly(path))
	end
	for _, path in of("config") do
		put_back(path)
		table.insert(restored.tampered, path)
	end
	for _, path in of("planted") do
		-- A project may have a module of such a name.
		if not change.existing[path] or not is_shadow(path) then
			put_back(path)
			table.insert(restored.tampered, path)
		end
	end
	for _, path in of("tests") do
		if change.existing[path] then
			put_back(path)
			local part = change.parts[path]
			local only_adds = part ~= nil and not part.removes and not change.cut
			if only_adds and text.search(table.concat(part.added, "\n"), RULES.hides) == nil then
				table.insert(restored.put_back, path)
			else
				table.insert(restored.tampered, path)
			end
		end
	end
	for _, path in of("sections") do
		local said = changed_keys(self, path, change.existing[path], before[path], after[path])
		if said ~= nil then
			put_back(path)
			table.insert(restored.tampered, said)
		end
	end
	if self.whole then
		local may_change: { [string]: boolean } = {}
		for _, path in change.free do
			may_change[path] = true
		end
		restored.weakened = weakened(before, after, may_change)
		for _, said in reaches(change.parts, is_back) do
			table.insert(restored.weakened, said)
		end
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

--- Returns what of the tests that ran before, by the command, is gone or skipped now, each as a part of a sentence; also where a
--- command that exited with 0 executed none, or some of them failed.
function guards.compare(self: Guards, before: { [string]: results.Results }, runs: { counts.Run }): { string }
	return counts.compare(before, runs, #self.may_change > 0)
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
