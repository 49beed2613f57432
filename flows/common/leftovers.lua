--!strict
--- What git and commands fail at because of what somebody has left in a worktree. That ends an attempt, and never the
--- session that it is part of.

local failure = require("./failure")

local leftovers = {}

--- The failures that may come of it. Whatever else goes wrong is the run's, and can be resumed.
local CODES = { "command-failed", "disk-failed", "git-failed", "path-refused" }

--- Does what may fail at that: returns true and what `work` returns, or false and why.
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
