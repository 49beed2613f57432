--!strict
--- The days or times between which sessions are looked for.

local clock = require("@nietz/clock")
local nietz = require("@nietz")

local period = {}

--- Seconds since 1970; nil where there is no bound. `before` is the end of a day that is named.
export type Period = { since: number?, before: number? }

--- The params of every command that looks for sessions.
period.PARAMS = {
	since = { type = "string", help = "Only sessions from this day or time on: 2026-03-01" },
	["until"] = { type = "string", help = "Only sessions up to this day or time" },
} :: { [string]: nietz.Param }

--- Returns the seconds of a day or a time that a filter names; `last` means the end of a day.
local function parse_moment(flag: string, value: string?, last: boolean): number?
	if value == nil then
		return nil
	end
	local day = string.match(value, "^%d%d%d%d%-%d%d%-%d%d$") ~= nil
	local seconds = clock.parse(if day then value .. "T00:00:00Z" else value)
	if seconds == nil then
		return nietz.usage(`--{flag} {value} is neither a day nor a time`, "such as 2026-03-01 or 2026-03-01T10:00:00Z")
	end
	return if day and last then seconds + 86400 - 0.001 else seconds
end

--- Returns the period that these params name.
function period.of(params: nietz.Values): Period
	return { since = parse_moment("since", params.since, false), before = parse_moment("until", params["until"], true) }
end

--- Whether a moment lies in it.
function period.holds(bounds: Period, at: number): boolean
	return (bounds.since == nil or at >= bounds.since) and (bounds.before == nil or at <= bounds.before)
end

return period
