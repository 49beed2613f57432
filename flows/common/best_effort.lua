--!strict
--- For work that may help a session and must never end it: a failure is shown, each text once in a run, and the session
--- goes on with a fallback. Apart, because the debug memory is reached this way from several modes.

local failure = require("./failure")
local ui = require("@nietz/ui")

local best_effort = {}

--- The lines that were shown in this run.
local already_said: { [string]: boolean } = {}

--- Shows a line, unless it was shown in this run already.
function best_effort.say_once(line: string)
	if not already_said[line] then
		already_said[line] = true
		ui.say(line)
	end
end

--- Returns what `give` returns. Where it fails, shows what `explain` makes of the failure's message, and returns `fallback`.
function best_effort.run<T>(fallback: T, explain: (why: string) -> string, give: () -> T): T
	local ok, value = pcall(give)
	if ok then
		return value
	end
	best_effort.say_once(explain(failure.of(value).message))
	return fallback
end

return best_effort
