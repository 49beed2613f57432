--!strict
--- Rules for session files that a JSON Schema cannot express.

local personas = require("@nietz/personas")
local text = require("@nietz/text")

local rules = {}

export type Fault = { pointer: string, message: string, severity: string? }

local DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

--- Whether `YYYY-MM-DD` is a day of the calendar.
function rules.is_date(value: string): boolean
	local y, m, d = string.match(value, "^(%d%d%d%d)%-(%d%d)%-(%d%d)$")
	local year, month, day = tonumber(y), tonumber(m), tonumber(d)
	if year == nil or month == nil or day == nil or month < 1 or month > 12 then
		return false
	end
	local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
	local last = if month == 2 and leap then 29 else DAYS[month]
	return day >= 1 and day <= last
end

--- Returns what is wrong with a document that its schema has accepted.
function rules.check(doc: any): { Fault }
	local session = doc.session
	local faults: { Fault } = {}
	local slug, date = string.match(session.id, "^(.+)%-(%d%d%d%d%-%d%d%-%d%d)$")
	if slug == nil then
		table.insert(faults, { pointer = "/session/id", message = `must be the slug, a hyphen and a date: {session.slug}-YYYY-MM-DD` })
	else
		if slug ~= session.slug then
			table.insert(faults, { pointer = "/session/id", message = `must begin with the slug "{session.slug}", not "{slug}"` })
		end
		if not rules.is_date(date :: string) then
			table.insert(faults, { pointer = "/session/id", message = `ends in {date}, which is not a date` })
		end
	end
	if session.persona ~= nil and personas.find(session.persona) == nil then
		local slugs = {}
		for _, persona in personas.list({ tag = "facilitator" }) do
			table.insert(slugs, persona.slug)
		end
		local near = text.nearest(session.persona, slugs)
		local message = `there is no persona "{session.persona}" here` .. (if near then `; did you mean "{near}"?` else "")
		table.insert(faults, { pointer = "/session/persona", message = message, severity = "note" })
	end
	local seen: { [number]: boolean } = {}
	for index, idea in session.ideas or {} do
		if seen[idea.id] then
			table.insert(faults, { pointer = `/session/ideas/{index - 1}/id`, message = `repeats the id {idea.id}` })
		end
		seen[idea.id] = true
	end
	return faults
end

return rules
