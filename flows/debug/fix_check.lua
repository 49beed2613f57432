--!strict
--- Runs the developer's own commands in a sandbox, on the workspace as it is now, uncommitted changes included: the command of
--- `--run`, whose output is evidence, and that of `--verify`, which says whether the problem is there.

local app = require("./app")
local entries = require("../common/memory/entries")
local git = require("@nietz/git")
local obstacles = require("../common/obstacles")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local fix_check = {}

--- How much of the end of an output is shown to the developer, in bytes, and how much the model gets at most.
local MAX_SHOWN, MAX_OUTPUT = 1500, 200_000

--- What a command came to. `cannot` says why it did not run at all; `file` has the whole of a long output.
export type Result = { exit: number, output: string, holds: boolean, cannot: string?, file: string? }

--- Returns the end of an output.
function fix_check.tail(output: string): string
	local plain = text.trim(output)
	return if #plain <= MAX_SHOWN then plain else "…" .. (string.gsub(string.sub(plain, -MAX_SHOWN), "^[^\n]*\n", ""))
end

--- Returns a text with one place in it replaced by another, both taken literally.
local function replace_place(value: string, place: string, other: string): string
	return (string.gsub(value, (string.gsub(place, "%p", "%%%0")), (string.gsub(other, "%%", "%%%%"))))
end

--- Runs a command of the developer's. `what` names its worktree; `seconds` is how long it may take.
function fix_check.exec(self: app.App, what: string, command: string, seconds: number): Result
	self.commands_run += 1
	local name = `{what}-{self.commands_run}`
	local branch = `nietz/{self.run}-{name}`
	local start = git.snapshot().commit
	-- What the project has and git ignores is looked for anew: it may have been installed meanwhile.
	local project = git.head().top
	local place: workplace.Workplace = { start = start, project = project, dependencies = git.dependencies() }
	git.branch(branch, start)
	local tree = git.worktree({ name = name, branch = branch })
	local ok, ran, cannot = pcall(function(): (git.Ran, string?)
		local done = workplace.exec(place, tree, { shell = command, seconds = seconds, repeatable = true, output = MAX_OUTPUT })
		local obstacle = obstacles.find(place, tree, command, done)
		if command == self.params.verify then
			entries.note_check(done, tree, start)
		end
		return done, if obstacle ~= nil then obstacle.what else nil
	end)
	tree:remove({ discard = true })
	git.delete_branch(branch)
	if not ok then
		return error(ran, 0)
	end
	local exit = if ran.over == "exit" then ran.exit else 124
	-- The worktree is gone: its places are those of the workspace.
	local output = replace_place(ran.output, tree.path, project)
	return { exit = exit, output = output, holds = exit == 0, cannot = cannot, file = ran.file }
end

--- Runs the command of `--verify` when the developer says that it is solved, records the result in the session, and shows it.
--- Returns nil where it could not run, which says nothing of the fix.
function fix_check.run(self: app.App): Result?
	local command: string = self.params.verify
	ui.say(self.t("verify.runs", { command = command }))
	local found = fix_check.exec(self, "verify", command, self.params.verify_seconds)
	if found.cannot ~= nil then
		ui.say(self.t("evidence.cannot", { command = command, why = found.cannot }))
		return nil
	end
	self.doc.nietz.verification = { command = command, exit = found.exit, holds = found.holds }
	if found.holds then
		ui.say(self.t("verify.holds", { command = command }))
	else
		local shown = fix_check.tail(found.output)
		ui.say(self.t("verify.fails", { command = command, exit = found.exit }) .. "\n\n```\n" .. shown .. "\n```")
	end
	return found
end

return fix_check
