--!strict
--- What may help a session and can never end it. What fails in it is said, each thing once in a run, and the session goes
--- on without.

local failure = require("./failure")
local ui = require("@nietz/ui")

local advice = {}

--- What was said in this run.
local told: { [string]: boolean } = {}

--- Says a line, unless it was said in this run.
function advice.say(line: string)
	if not told[line] then
		told[line] = true
		ui.say(line)
	end
end

--- Returns what `give` returns. Where it fails, says what `says` makes of the failure's message, and returns `without`.
function advice.take<T>(without: T, says: (why: string) -> string, give: () -> T): T
	local ok, value = pcall(give)
	if ok then
		return value
	end
	advice.say(says(failure.of(value).message))
	return without
end

return advice
