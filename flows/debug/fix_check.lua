--!strict
--- Checks whether a fix holds: runs the command of `--verify` in a sandbox, on the workspace as it is now, uncommitted changes
--- included.

local app = require("./app")
local entries = require("../common/memory/entries")
local git = require("@nietz/git")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local fix_check = {}

--- How much of the end of the output is shown, in bytes.
local MAX_OUTPUT = 1500

export type Result = { exit: number, output: string, holds: boolean }

local function tail(output: string): string
	local plain = text.trim(output)
	return if #plain <= MAX_OUTPUT then plain else "…" .. (string.gsub(string.sub(plain, -MAX_OUTPUT), "^[^\n]*\n", ""))
end

--- Runs the command of `--verify`, records the result in the session, and shows it.
function fix_check.run(self: app.App): Result
	local command: string = self.params.verify
	self.fix_checks += 1
	local name = `verify-{self.fix_checks}`
	local branch = `nietz/{self.run}-{name}`
	ui.say(self.t("verify.runs", { command = command }))
	local start = git.snapshot().commit
	git.branch(branch, start)
	local tree = git.worktree({ name = name, branch = branch })
	local ok, ran = pcall(tree.exec, tree, { shell = command, seconds = self.params.verify_seconds, repeatable = true })
	if ok then
		entries.note_check(ran, tree, start)
	end
	tree:remove({ discard = true })
	git.delete_branch(branch)
	if not ok then
		return error(ran, 0)
	end
	local exit = if ran.over == "exit" then ran.exit else 124
	local found: Result = { exit = exit, output = tail(ran.output), holds = exit == 0 }
	self.doc.nietz.verification = { command = command, exit = exit, holds = found.holds }
	if found.holds then
		ui.say(self.t("verify.holds", { command = command }))
	else
		ui.say(self.t("verify.fails", { command = command, exit = exit }) .. "\n\n```\n" .. found.output .. "\n```")
	end
	return found
end

return fix_check
