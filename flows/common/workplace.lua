--!strict
--- Where the commands of a session run: the commit that it starts from, the dependencies that they find in a worktree, and
--- what `--setup` has installed. Apart, because every mode that runs a project's own commands needs the same ground.

local git = require("@nietz/git")
local leftovers = require("./leftovers")
local local_paths = require("./local_paths")
local nietz = require("@nietz")
local ui = require("@nietz/ui")

local workplace = {}

--- The files of a commit that ask for other dependencies, and what is wrong where the setup was run again and fails.
export type Installed = { files: { string }, failed: string? }

--- The worktree of the user's own commands, and whether one of them is at work there.
export type Validation = {
	tree: git.Handle,
	busy: boolean,
	--- By the name of a worktree in which a commit is validated that asks for other dependencies than the start commit.
	installed: { [string]: Installed },
}

export type Workplace = {
	--- The commit that the session starts from.
	start: string,
	--- The user's checkout: commands may find their worktree there.
	project: string,
	dependencies: git.Dependencies?,
	--- The worktree in which `--setup` ran.
	setup: git.Handle?,
	--- What runs `--setup`, where there is one.
	setup_command: git.Command?,
	validation: Validation?,
}

--- The params of a mode with a workplace.
workplace.PARAMS = {
	setup = {
		type = "string",
		help = "A shell command that installs what the project needs, run once; with the network only by --allow-net",
	},
	setup_read = {
		type = "string",
		many = true,
		default = {},
		help = "A file with a registry's key that the setup alone may read, such as ~/.npmrc",
	},
	setup_seconds = { type = "number", default = 1800, min = 1, max = 86400, help = "Seconds that it may take" },
	with_changes = { type = "boolean", default = false, help = "Start from the files as they are now, and not from the last commit" },
} :: { [string]: nietz.Param }

--- The names of files that say which dependencies a project has, as patterns.
local MANIFESTS = {
	"^package%.json$",
	"^package%-lock%.json$",
	"^npm%-shrinkwrap%.json$",
	"^yarn%.lock$",
	"^pnpm%-lock%.yaml$",
	"^bun%.lockb?$",
	"^requirements.*%.txt$",
	"^constraints.*%.txt$",
	"^pyproject%.toml$",
	"^setup%.py$",
	"^setup%.cfg$",
	"^poetry%.lock$",
	"^uv%.lock$",
	"^Pipfile$",
	"^Pipfile%.lock$",
	"^Gemfile$",
	"^Gemfile%.lock$",
	"^composer%.json$",
	"^composer%.lock$",
	"^mix%.exs$",
	"^mix%.lock$",
}
--- How many names of files are shown.
local MAX_NAMES = 5
--- How much of the end of an output is shown, in bytes.
local MAX_OUTPUT = 1500

local function plural(count: number, noun: string): string
	return `{count} {noun}{if count == 1 then "" else "s"}`
end

local function size_text(bytes: number): string
	if bytes >= 1000000 then
		return `{math.round(bytes / 1000000)} MB`
	end
	return `{math.max(1, math.round(bytes / 1000))} kB`
end

local function names_text(names: { string }): string
	local shown = {}
	for index = 1, math.min(MAX_NAMES, #names) do
		shown[index] = `\`{names[index]}\``
	end
	local more = #names - #shown
	return table.concat(shown, ", ") .. (if more > 0 then ` and {more} more` else "")
end

local function tail(output: string): string
	return if #output <= MAX_OUTPUT then output else "…" .. (string.gsub(string.sub(output, -MAX_OUTPUT), "^[^\n]*\n", ""))
end

--- Returns the commit that a session starts from, and says what of the files is not in it.
local function start_commit(params: nietz.Values, head: string): string
	local seen, now = leftovers.try(git.snapshot)
	if not seen then
		if params.with_changes then
			nietz.fail(`the files as they are cannot be taken: {now}`, "commit them, or leave --with-changes out")
		end
		ui.say(`Git cannot say what is not committed: {now}`)
		return head
	elseif not now.changed then
		return head
	end
	local changed = git.changed(head, now.commit)
	local files = `{plural(#changed, "file")} with changes that are not committed: {names_text(changed)}`
	if params.with_changes then
		ui.say(`This starts from the files as they are, with {files}.`)
		return now.commit
	end
	ui.say(`This starts from the last commit, without {files}. --with-changes starts from the files as they are.`)
	return head
end

--- Returns the commit of the branch that the user named to start from.
local function base_commit(params: nietz.Values): string
	if params.with_changes then
		nietz.usage("--base starts from a branch, and --with-changes from the files as they are", "give one of them")
	end
	local commit = git.commit_of(params.base)
	if commit == nil then
		nietz.usage(`there is no branch {params.base}`, "--base BRANCH names a branch of this repository: git branch --list")
	end
	return commit :: string
end

--- Says what commands find in a worktree.
local function say_dependencies(found: git.Dependencies)
	if #found.folders == 0 then
		return
	end
	local parts, own = {}, {}
	for _, folder in found.folders do
		table.insert(parts, `\`{folder.path}\` ({plural(folder.files, "file")}, {size_text(folder.bytes)})`)
		for _, name in folder.editable do
			table.insert(own, name)
		end
	end
	local whose = if found.from ~= nil then "that the setup has installed" else "of your checkout"
	local leads = if #own > 0 then ` What in them leads to the project leads to the worktree: {names_text(own)}.` else ""
	ui.say(`Commands find {table.concat(parts, ", ")} {whose}, and change nothing there.{leads}`)
end

--- Removes a worktree with its branch. One that cannot be removed stays, which is said.
local function remove(tree: git.Handle)
	local removed, why = leftovers.try(function()
		tree:remove({ discard = true })
		git.delete_branch(tree.branch)
	end)
	if not removed then
		ui.say(`The worktree {tree.path} stays: {why}`)
	end
end

--- Returns what runs the setup.
local function setup_command(params: nietz.Values): git.Command
	return {
		shell = params.setup,
		seconds = params.setup_seconds,
		repeatable = true,
		read = if #params.setup_read > 0 then params.setup_read else nil,
	}
end

--- Runs `--setup` in a worktree of its own, and returns that with what it has installed.
local function run_setup(command: git.Command, run: string, start: string): (git.Handle, git.Dependencies)
	local branch = `nietz/{run}-setup`
	git.branch(branch, start)
	local tree = git.worktree({ name = "setup", branch = branch })
	ui.status(`setting up: {command.shell}`)
	local ran = tree:exec(command)
	ui.status("")
	if ran.over ~= "exit" or ran.exit ~= 0 then
		local how = if ran.over == "exit" then `ended with {ran.exit}` else `was ended by its limit: {ran.over}`
		ui.say("```\n" .. tail(ran.output) .. "\n```")
		remove(tree)
		nietz.fail(`the setup \`{command.shell}\` {how}`, "what it wrote stands above; if it needs the network: --allow-net")
	end
	return tree, tree:dependencies()
end

--- Prepares a session's workplace, and says what there is.
function workplace.new(params: nietz.Values, run: string): Workplace
	if #params.setup_read > 0 and params.setup == nil then
		nietz.usage("--setup-read names a file for the setup, and there is no --setup", "give the command that installs, too: --setup CMD")
	end
	local head = git.head()
	local start = if params.base ~= nil then base_commit(params) else start_commit(params, head.commit)
	local found, setup = git.dependencies(), nil
	local installs = if params.setup ~= nil then setup_command(params) else nil
	if installs ~= nil then
		local tree, installed = run_setup(installs, run, start)
		setup = tree
		-- A setup that fetches into caches installs nothing here.
		found = if #installed.folders > 0 then installed else found
	end
	say_dependencies(found)
	return { start = start, project = head.top, dependencies = found, setup = setup, setup_command = installs, validation = nil }
end

--- Runs a command in a worktree of the session. With `keep`, what it installs into the folders of dependencies is there for the
--- worktree's next commands; in the place that they are from nothing changes.
function workplace.exec(self: Workplace, tree: git.Handle, command: git.Command, builds: git.Builds?, keep: boolean?): git.Ran
	local given = table.clone(command)
	given.builds = builds
	local own = self.validation
	local installed = if own ~= nil then own.installed[tree.name] else nil
	local has_setup = self.setup_command ~= nil
	if installed ~= nil and installed.failed ~= nil then
		return { over = "exit", exit = 1, output = installed.failed }
	elseif installed == nil or not has_setup then
		given.dependencies = self.dependencies
	end
	if keep and given.dependencies ~= nil then
		given.dependencies = table.clone(given.dependencies)
		given.dependencies.keep = true
	end
	local ran = tree:exec(given)
	if installed ~= nil and not has_setup and ran.exit ~= 0 then
		local names = names_text(installed.files)
		ran.output ..= `\n[what {names} asks for now is not installed for validation: --setup CMD installs it, such as --setup "npm ci"]`
	end
	return ran
end

--- Looks whether a commit asks for other dependencies than the start commit. Where it does, the setup is run again in the worktree
--- that stands at it, without the keys of registries, which the work's own scripts could read: what the work's own commands have
--- installed validates nothing.
local function install(self: Workplace, own: Validation, tree: git.Handle, commit: string)
	own.installed[tree.name] = nil
	local files: { string } = {}
	for _, path in git.changed(self.start, commit) do
		local name = string.match(path, "[^/]+$") or path
		for _, pattern in MANIFESTS do
			if string.find(name, pattern) ~= nil then
				table.insert(files, path)
				break
			end
		end
	end
	if #files == 0 then
		return
	end
	local installed: Installed = { files = files, failed = nil }
	local again = self.setup_command
	if again ~= nil then
		local command = table.clone(again)
		command.read = nil
		local ran = tree:exec(command)
		if ran.over ~= "exit" or ran.exit ~= 0 then
			local how = if ran.over == "exit" then `ended with {ran.exit}` else `was ended by its limit: {ran.over}`
			local why = `the setup \`{command.shell}\`, run again without --setup-read because of {names_text(files)}, {how}:`
			installed.failed = `{why}\n{workplace.localize(self, tree, ran.output)}`
		end
	end
	own.installed[tree.name] = installed
end

--- Returns what a command wrote in a worktree without the places of this session: its own paths are relative.
function workplace.localize(self: Workplace, tree: git.Handle, output: string): string
	local folders = { tree.path }
	if self.validation ~= nil then
		table.insert(folders, self.validation.tree.path)
	end
	-- Where the dependencies are from, a command finds its own worktree.
	table.insert(folders, if self.setup ~= nil then self.setup.path else self.project)
	return local_paths.without(output, folders)
end

--- Makes the worktree in which the user's own commands validate, and runs them there on what the session starts from. What that
--- builds is the user's own code, and kept: each validation begins with it.
function workplace.prepare_validation(self: Workplace, run: string, commands: { git.Command }): { git.Ran }
	local branch = `nietz/{run}-validation`
	git.branch(branch, self.start)
	local tree = git.worktree({ name = "validation", branch = branch })
	self.validation = { tree = tree, busy = false, installed = {} }
	local runs = {}
	for _, command in commands do
		ui.status(`before the first change: {command.shell}`)
		local ran = workplace.exec(self, tree, command, { keep = true })
		ran.output = workplace.localize(self, tree, ran.output)
		table.insert(runs, ran)
	end
	ui.status("")
	return runs
end

--- Has `run` validate a commit: in the worktree of validation, in which no attempt ever worked, or where another validation is
--- at work there, in the worktree given, which stands at that commit.
function workplace.validate<R>(self: Workplace, tree: git.Handle, commit: string, run: (tree: git.Handle, builds: git.Builds?) -> R): R
	local own = self.validation
	if own == nil then
		return run(tree, nil)
	elseif own.busy then
		install(self, own, tree, commit)
		return run(tree, { of = own.tree.name })
	end
	own.busy = true
	local ok, result: any = pcall(function()
		own.tree:move(commit)
		install(self, own, own.tree, commit)
		return run(own.tree, { keep = false })
	end)
	own.busy = false
	if not ok then
		error(result, 0)
	end
	return result
end

--- Removes what was made for the session.
function workplace.finish(self: Workplace)
	local made = { self.setup :: git.Handle }
	if self.validation ~= nil then
		table.insert(made, self.validation.tree)
	end
	for _, tree in made do
		remove(tree)
	end
end

return workplace
