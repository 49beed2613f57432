--!strict
--- Where the commands of a session run: the commit that it starts from, the dependencies that they find in a worktree, and
--- what `--setup` has installed. Apart, because every mode that runs a project's own commands needs the same ground.

local git = require("@nietz/git")
local leftovers = require("./leftovers")
local nietz = require("@nietz")
local ui = require("@nietz/ui")

local workplace = {}

export type Workplace = {
	--- The commit that the session starts from.
	start: string,
	dependencies: git.Dependencies?,
	--- The worktree in which `--setup` ran.
	setup: git.Handle?,
}

--- The params of a mode with a workplace.
workplace.PARAMS = {
	setup = {
		type = "string",
		help = "A shell command that installs what the project needs, run once; with the network only by --allow-net",
	},
	setup_seconds = { type = "number", default = 1800, min = 1, max = 86400, help = "Seconds that it may take" },
	with_changes = { type = "boolean", default = false, help = "Start from the files as they are now, and not from the last commit" },
} :: { [string]: nietz.Param }

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
local function start_commit(params: nietz.Values): string
	local head = git.head().commit
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

--- Runs `--setup` in a worktree of its own, and returns that with what it has installed.
local function run_setup(params: nietz.Values, run: string, start: string): (git.Handle, git.Dependencies)
	local branch = `nietz/{run}-setup`
	git.branch(branch, start)
	local tree = git.worktree({ name = "setup", branch = branch })
	ui.status(`setting up: {params.setup}`)
	local ran = tree:exec({ shell = params.setup, seconds = params.setup_seconds, repeatable = true })
	ui.status("")
	if ran.over ~= "exit" or ran.exit ~= 0 then
		local how = if ran.over == "exit" then `ended with {ran.exit}` else `was ended by its limit: {ran.over}`
		ui.say("```\n" .. tail(ran.output) .. "\n```")
		nietz.fail(`the setup \`{params.setup}\` {how}`, "what it wrote stands above; if it needs the network: --allow-net")
	end
	return tree, tree:dependencies()
end

--- Prepares a session's workplace, and says what there is.
function workplace.new(params: nietz.Values, run: string): Workplace
	local start = start_commit(params)
	local found, setup = git.dependencies(), nil
	if params.setup ~= nil then
		local tree, installed = run_setup(params, run, start)
		setup = tree
		-- A setup that fetches into caches installs nothing here.
		found = if #installed.folders > 0 then installed else found
	end
	say_dependencies(found)
	return { start = start, dependencies = found, setup = setup }
end

--- Runs a command in a worktree of the session.
function workplace.exec(self: Workplace, tree: git.Handle, command: git.Command, builds: git.Builds?): git.Ran
	local given = table.clone(command)
	given.dependencies = self.dependencies
	given.builds = builds
	return tree:exec(given)
end

--- Removes what was made for the session.
function workplace.finish(self: Workplace)
	local tree = self.setup
	if tree == nil then
		return
	end
	local removed, why = leftovers.try(function()
		tree:remove({ discard = true })
		git.delete_branch(tree.branch)
	end)
	if not removed then
		ui.say(`The worktree {tree.path} stays: {why}`)
	end
end

--- What a command writes that misses something, and what that is; `%1` is what the pattern has caught.
local MISSING: { { pattern: string, what: string } } = {
	{ pattern = "python[%d%.]*: No module named ([%w_%.]+)", what = "Python has no module `%1`" },
	{ pattern = "Cannot find module '([^'\n%./][^'\n]*)'", what = "Node finds no module `%1`" },
	{ pattern = "no such command: `([^`\n]+)`", what = "cargo has no command `%1`" },
	{ pattern = "[Cc]ould not resolve host:? ?([^\n ]*)", what = "it needs the network (%1)" },
	{ pattern = "Temporary failure in name resolution", what = "it needs the network" },
	{ pattern = "getaddrinfo E[%w_]+ ([^\n ]+)", what = "it needs the network (%1)" },
	{ pattern = "failed to download from `([^`\n]+)`", what = "it needs the network (%1)" },
	{ pattern = "no matching package named `([^`\n]+)` found", what = "the crate `%1` is not in cargo's cache" },
	{ pattern = "version https://git%-lfs%.github%.com", what = "a file of git-lfs is here as its pointer alone" },
}

--- Returns the submodules of a worktree whose folders are empty.
local function empty_submodules(tree: git.Handle): { string }
	local ok, content = pcall(tree.read, tree, ".gitmodules")
	local empty = {}
	for path in string.gmatch(if ok then content else "", "path%s*=%s*([^\n]+)") do
		local there, listed = pcall(tree.list, tree, path)
		if there and #listed.entries == 0 then
			table.insert(empty, path)
		end
	end
	return empty
end

--- Returns why a command that ran no test could not run here, or nil where it seems to have run and failed.
function workplace.cannot_run(tree: git.Handle, command: string, ran: git.Ran): string?
	if ran.over ~= "exit" or ran.exit == 0 then
		return nil
	elseif ran.exit == 127 then
		local name = string.match(ran.output, "([^%s:]+): command not found") or string.match(ran.output, "([^%s:]+): not found")
		return `{if name then `\`{name}\`` else `a program of \`{command}\``} is not found`
	elseif ran.exit == 126 then
		return `a program of \`{command}\` cannot be executed`
	end
	local submodules = empty_submodules(tree)
	if #submodules > 0 then
		return `submodules are not in worktrees: {names_text(submodules)}`
	end
	for _, missing in MISSING do
		local caught = string.match(ran.output, missing.pattern)
		if caught ~= nil then
			return (string.gsub(missing.what, "%%1", function()
				return caught
			end))
		end
	end
	return nil
end

return workplace
