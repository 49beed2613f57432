--!strict
--- Failures of git and of commands that come from what somebody left in a worktree (a pipe, a file without rights). They end
--- an attempt and never its session, so every step in a worktree goes through here.

local failure = require("./failure")

local leftovers = {}

--- The codes of such failures. Any other failure ends the run, which can be resumed.
local CODES = { "command-failed", "disk-failed", "git-failed", "path-refused" }

--- Returns true and what `work` returns; or false and why, where it failed because of what was left.
function leftovers.try(work: () -> ...any): (boolean, any)
	local ok, result: any = pcall(work)
	if ok then
		return true, result
	end
	if not failure.is(result, CODES) then
		error(result, 0)
	end
	return false, result.message
end

return leftovers
