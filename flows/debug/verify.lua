--!strict
--- Whether a fix holds: the developer's own command, run in a sandbox on the workspace as it is now, with what is not
--- committed yet.

local app = require("./app")
local git = require("@nietz/git")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local verify = {}

--- How much of the output is told, from its end.
local TOLD = 1500

export type Ran = { exit: number, output: string, holds: boolean }

local function tail(output: string): string
	local plain = text.trim(output)
	return if #plain <= TOLD then plain else "…" .. (string.gsub(string.sub(plain, -TOLD), "^[^\n]*\n", ""))
end

--- Runs the command of `--verify`, notes what came of it, and says so.
function verify.run(self: app.App, run: string): Ran
	local command: string = self.params.verify
	self.verified += 1
	local name = `verify-{self.verified}`
	local branch = `nietz/{run}-{name}`
	ui.say(self.t("verify.runs", { command = command }))
	git.branch(branch, git.snapshot().commit)
	local tree = git.worktree({ name = name, branch = branch })
	local ok, ran = pcall(tree.exec, tree, { shell = command, seconds = self.params.verify_seconds, repeatable = true })
	tree:remove({ discard = true })
	git.delete_branch(branch)
	if not ok then
		return error(ran, 0)
	end
	local exit = if ran.over == "exit" then ran.exit else 124
	local found: Ran = { exit = exit, output = tail(ran.output), holds = exit == 0 }
	self.doc.verification = { command = command, exit = exit, holds = found.holds }
	if found.holds then
		ui.say(self.t("verify.holds", { command = command }))
	else
		ui.say(self.t("verify.fails", { command = command, exit = exit }) .. "\n\n```\n" .. found.output .. "\n```")
	end
	return found
end

return verify
