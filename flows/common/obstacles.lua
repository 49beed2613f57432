--!strict
--- Why a command cannot run here, as opposed to: it runs, and fails. Apart, because no model can do anything about it: what is
--- missing is told to the user before the first call.

local git = require("@nietz/git")
local json = require("@nietz/json")
local workplace = require("./workplace")

local obstacles = {}

--- What can be done about most of them.
obstacles.HINT = "--setup CMD installs what it needs, once, for all worktrees; what stands elsewhere has to be in the repository"

--- What is in the way: a sentence for the user, and the name of what is missing.
export type Obstacle = { what: string, name: string? }

--- What a command writes that misses something, and what that is; `%1` is what the pattern has caught.
local MISSING: { { pattern: string, what: string } } = {
	{ pattern = "python[%d%.]*: No module named ([%w_%.]+)", what = "Python has no module `%1`" },
	{ pattern = "Cannot find module '([^'\n%./][^'\n]*)'", what = "Node finds no module `%1`" },
	{ pattern = "Cannot find package '([^'\n%./][^'\n]*)'", what = "Node finds no module `%1`" },
	{ pattern = "no such command: `([^`\n]+)`", what = "cargo has no command `%1`" },
	{ pattern = "[Cc]ould not resolve host:? ?([^\n ]*)", what = "it needs the network (%1)" },
	{ pattern = "Temporary failure in name resolution", what = "it needs the network" },
	{ pattern = "getaddrinfo E[%w_]+ ([^\n ]+)", what = "it needs the network (%1)" },
	{ pattern = "failed to download from `([^`\n]+)`", what = "it needs the network (%1)" },
	{ pattern = "no matching package named `([^`\n]+)` found", what = "the crate `%1` is not in cargo's cache" },
}
--- What shells and `env` write where a program is missing.
local NOT_FOUND =
	{ "env: ‘([^’\n]+)’: No such file", "env: '([^'\n]+)': No such file", "([^%s:]+): command not found", "([^%s:]+): not found" }
--- What they write where a program is there, and what is to run it is not.
local NO_INTERPRETER = { "([^%s:]+): cannot execute: required file not found", "([^%s:]+): [^\n]*bad interpreter: No such file" }
--- What programs write where a file cannot be read, and how near to its name, in bytes.
local ABSENT, NEAR = { "No such file or directory", "ENOENT", "Permission denied", "EACCES" }, 200
--- How the file begins that git-lfs leaves in the place of another.
local POINTER = "^version https://git-lfs\\.github\\.com/spec/v1$"

--- How much of the end of an output is searched, in bytes: a word of a megabyte would be searched for as long as it is long, squared.
local MAX_SEARCHED = 8192

local function read(tree: git.Handle, path: string): string?
	local ok, text = pcall(tree.read, tree, path)
	return if ok then text else nil
end

local function is_there(tree: git.Handle, path: string): boolean
	return (pcall(tree.read, tree, path)) or (pcall(tree.list, tree, path))
end

local function last_part(path: string): string
	return string.match(path, "([^/]+)/*$") or path
end

--- Returns what installs a Node project's dependencies that are not there, as the end of a sentence; or nothing.
local function node_hint(self: workplace.Workplace, tree: git.Handle): string
	local text = read(tree, "package.json")
	local ok, package = pcall(json.decode, text or "")
	if not ok or type(package) ~= "table" or (package.dependencies == nil and package.devDependencies == nil) then
		return ""
	end
	local found: { git.DependencyFolder } = if self.dependencies then self.dependencies.folders else {}
	for _, folder in found do
		if folder.path == "node_modules" then
			return ""
		end
	end
	local installs = if read(tree, "package-lock.json") ~= nil then "npm ci" else "npm install"
	return `; package.json has dependencies, and there is no \`node_modules\`: --setup "{installs}" installs them`
end

--- Returns the program that a script in the worktree says is to run it.
local function interpreter(tree: git.Handle, script: string): string?
	local text = read(tree, (string.gsub(script, "^%./", "")))
	return if text ~= nil then string.match(text, "^#!%s*([^%s]+)") else nil
end

local function of_program(self: workplace.Workplace, tree: git.Handle, command: string, ran: git.Ran): Obstacle?
	local output = string.sub(ran.output, -MAX_SEARCHED)
	for _, pattern in NO_INTERPRETER do
		local script = string.match(output, pattern)
		if script ~= nil then
			return { what = `\`{interpreter(tree, script) or "a program"}\`, which is to run \`{script}\`, is not found` }
		end
	end
	if ran.exit == 126 then
		return { what = `a program of \`{command}\` cannot be executed`, name = command }
	end
	for _, pattern in NOT_FOUND do
		local name = string.match(output, pattern)
		local runs = if name ~= nil then interpreter(tree, name) else nil
		if runs ~= nil then
			return { what = `\`{runs}\`, which is to run \`{name}\`, is not found` }
		elseif name ~= nil then
			return { what = `\`{name}\` is not found{node_hint(self, tree)}`, name = name }
		end
	end
	return { what = `a program of \`{command}\` is not found`, name = command }
end

--- Returns the submodules of a worktree whose folders are empty.
local function empty_submodules(tree: git.Handle): { string }
	local empty = {}
	for path in string.gmatch(read(tree, ".gitmodules") or "", "path%s*=%s*([^\n]+)") do
		local there, listed = pcall(tree.list, tree, path)
		if there and #listed.entries == 0 then
			table.insert(empty, path)
		end
	end
	return empty
end

--- Returns the files that stand in the worktree as pointers of git-lfs.
local function pointers(tree: git.Handle): { string }
	local paths: { string } = {}
	if not string.find(read(tree, ".gitattributes") or "", "filter=lfs", 1, true) then
		return paths
	end
	local ok, found = pcall(tree.grep, tree, POINTER)
	if not ok then
		return paths
	end
	for _, line in found.lines do
		if line.line == 1 then
			table.insert(paths, line.path)
		end
	end
	return paths
end

--- Returns what of a repository is not in a worktree, and the command or its output names.
local function of_files(self: workplace.Workplace, tree: git.Handle, command: string, output: string): Obstacle?
	local said = `{command}\n{output}`
	for _, path in empty_submodules(tree) do
		if string.find(said, last_part(path), 1, true) then
			return { what = `submodules are not in worktrees: \`{path}\`` }
		end
	end
	for _, path in pointers(tree) do
		if string.find(said, last_part(path), 1, true) then
			return { what = `\`{path}\` is here as a pointer of git-lfs, and not as the file: \`git lfs install\` makes git fetch it` }
		end
	end
	for word in string.gmatch(command, "[%w_][%w_%-%./]*") do
		local path = string.gsub(word, "/+$", "")
		local looks_like_path = string.find(path, "[/%.]") and not string.find(path, "..", 1, true)
		if looks_like_path and not is_there(tree, path) then
			local ok, known = pcall(git.files, self.start, path)
			local within, inside = pcall(git.files, self.start, `{path}/**`)
			if ok and #known.paths > 0 or within and #inside.paths > 0 then
				return { what = `\`{path}\` is not in this sparse checkout: \`git sparse-checkout add {path}\` fetches it` }
			end
		end
	end
	return nil
end

--- Returns what a command has missed beside the repository. A worktree stands elsewhere: a path that leads out of it by `..` leads
--- to another place there, and what stands beside the project is not shown to commands.
local function beside(self: workplace.Workplace, tree: git.Handle, output: string): Obstacle?
	for _, folder in { tree.path, self.project } do
		local before = (string.match(folder, "^(.*/)[^/]+$") or "/") :: string
		local from = 1
		while #before > 1 do
			local at, last = string.find(output, before, from, true)
			if at == nil then
				break
			end
			from = (last :: number) + 1
			local name = string.match(output, "^[%w_][^/%s`'\",:;)%]]*", from)
			local around = string.sub(output, math.max(1, at - NEAR), from + NEAR)
			for _, said in ABSENT do
				if name ~= nil and string.find(around, said, 1, true) ~= nil then
					return { what = `\`../{name}\` is outside of the repository, and a worktree has only what is in it` }
				end
			end
		end
	end
	return nil
end

--- Returns what keeps a command from running here, or nil where it ran and failed.
function obstacles.find(self: workplace.Workplace, tree: git.Handle, command: string, ran: git.Ran): Obstacle?
	if ran.over ~= "exit" or ran.exit == 0 then
		return nil
	elseif ran.exit == 127 or ran.exit == 126 then
		return of_program(self, tree, command, ran)
	end
	local output = string.sub(ran.output, -MAX_SEARCHED)
	local missing = of_files(self, tree, command, output)
	missing = missing or beside(self, tree, output)
	if missing ~= nil then
		return missing
	end
	for _, known in MISSING do
		local caught = string.match(output, known.pattern)
		if caught ~= nil then
			local what = string.gsub(known.what, "%%1", function()
				return caught
			end)
			local is_node = string.find(known.what, "Node", 1, true) ~= nil
			return { what = what .. (if is_node then node_hint(self, tree) else ""), name = caught }
		end
	end
	return nil
end

--- Returns what keeps a command from running here before anything was changed, or nil. What a goal is to make is not missing:
--- what its text names, and any path of the project.
function obstacles.before(self: workplace.Workplace, command: string, ran: git.Ran, goal: string): string?
	local validation = self.validation :: workplace.Validation
	local found = obstacles.find(self, validation.tree, command, ran)
	if found == nil then
		return nil
	end
	local name = found.name
	if name ~= nil and (string.find(name, "^[^/]+/") or string.find(goal, name, 1, true) or name == command) then
		return nil
	end
	return found.what
end

return obstacles
