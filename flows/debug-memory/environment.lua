--!strict
--- What a run of the tests depended on: the system, the runtime and its version, and what was installed for it. Apart, because
--- most runners do not say it, and programs have to be asked.

local documents = require("@nietz/documents")
local git = require("@nietz/git")
local nietz = require("@nietz")
local results = require("../common/memory/results")
local state = require("./state")
local text = require("@nietz/text")
local workplace = require("../common/workplace")

local environment = {}

--- How a runtime tells its version; the manifest allows just these texts.
environment.COMMANDS = {
	os = "uname -sr",
	dotnet = "dotnet --version",
	go = "go version",
	java = "java -version",
	node = "node --version",
	php = "php --version",
	python = "python3 --version",
	ruby = "ruby --version",
	rust = "rustc --version",
} :: { [string]: string }

--- Returns the texts that the manifest has to allow.
function environment.commands(): { string }
	local found = {}
	for _, command in environment.COMMANDS do
		table.insert(found, command)
	end
	table.sort(found)
	return found
end

--- The program by which the host tells whether commands run in a sandbox: it allows this one by itself there alone.
local IN_SANDBOX = "uname"
environment.SANDBOX_ONLY = `sandbox:{IN_SANDBOX}`

--- Returns whether commands of this run are held by a sandbox; nil where the user allows that program anyway, so that nothing
--- is told by it.
function environment.is_sandboxed(ctx: nietz.Context): boolean?
	return if table.find(ctx.params.run, IN_SANDBOX) ~= nil then nil else table.find(ctx.commands, IN_SANDBOX) ~= nil
end

--- Returns what a program says of its version, asked once in a session; nil where it says nothing.
local function ask(self: state.Session, name: string): string?
	local known = self.versions[name]
	if known == nil then
		local asked, ran = pcall(function()
			return workplace.exec(self.workplace, self.tree, { shell = environment.COMMANDS[name], seconds = 30, repeatable = true })
		end)
		-- What is not known stays unknown: a version is no reason to end a session.
		known = if asked and ran.over == "exit" and ran.exit == 0 then text.trim(text.lines(ran.output)[1] or "") else ""
		self.versions[name] = known
	end
	return if known == "" then nil else known
end

--- Returns whether the user's command names a program of its own, such as `.venv/bin/python`: then what `python3` is says nothing.
local function runs_its_own(command: string, runtime: string): boolean
	for word in string.gmatch(command, "%S+") do
		local base = string.match(word, "/([^/]+)$")
		if base ~= nil and string.sub(base, 1, #runtime) == runtime then
			return true
		end
	end
	return false
end

local function runtime_version(self: state.Session, latest: results.Results): string?
	local runtime = latest.runtime
	if latest.runtime_version ~= nil or runtime == nil then
		return latest.runtime_version
	elseif environment.COMMANDS[runtime] == nil or runs_its_own(self.params.test, runtime) then
		return nil
	end
	local said = ask(self, runtime)
	return if said then string.match(said, "%d+%.%d[%w%.%-]*") else nil
end

--- Returns what an execution records of its environment.
function environment.describe(self: state.Session, latest: results.Results): documents.Document
	local dependencies = {}
	local given = self.workplace.dependencies
	local folders: { git.DependencyFolder } = if given then given.folders else {}
	for _, folder in folders do
		table.insert(dependencies, { path = folder.path, digest = folder.digest })
	end
	return {
		runtime = latest.runtime,
		runtime_version = runtime_version(self, latest),
		test_framework = latest.framework,
		os = ask(self, "os"),
		additional = {
			test_command = self.params.test,
			framework_version = latest.framework_version,
			sandbox = self.in_sandbox,
			setup = self.params.setup,
			dependencies = if #dependencies > 0 then dependencies else nil,
			starts_from_changes = if self.params.with_changes then true else nil,
		},
	}
end

return environment
