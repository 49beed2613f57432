--!strict
--- The branch that a session is for.

local git = require("@nietz/git")
local nietz = require("@nietz")
local ui = require("@nietz/ui")

local base = {}

--- Returns the branch that a session is for: the one that the user named, the one that is checked out, or the repository's usual
--- one, which is said.
function base.branch(named: string?, head: git.Head): string
	if named ~= nil then
		return named
	elseif head.branch ~= nil then
		return head.branch
	elseif head.default_branch ~= nil then
		ui.say(
			`No branch is checked out: this starts from the commit {string.sub(head.commit, 1, 12)}, and is noted as work for {head.default_branch}.`
		)
		return head.default_branch
	end
	return nietz.usage(
		"no branch is checked out, and the repository has no usual one: origin's own, main or master",
		"--base BRANCH names the one to start from, or check one out: git switch BRANCH"
	)
end

return base
