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

--- Returns the ids that the session's own ledger has given to ideas: one that was struck stands there alone.
local function ids_of_ledger(own: any): { [number]: boolean }
	local known: { [number]: boolean } = {}
	for _, entry in if own ~= nil and own.ledger ~= nil then own.ledger.entries else {} do
		if entry.idea ~= nil then
			known[entry.idea] = true
		end
	end
	return known
end

--- Returns what is odd and keeps nobody from working with the file.
local function remarks(session: any, own: any): { Fault }
	local found: { Fault } = {}
	local function add(pointer: string, message: string)
		table.insert(found, { pointer = pointer, message = message })
	end
	for _, mode in { "party", "panel" } do
		local active = session[`{mode}_active`] == true
		if session.mode == mode and not active then
			add("/session/mode", `says {mode}, and {mode}_active does not`)
		elseif active and session.mode ~= mode then
			add(`/session/{mode}_active`, `says that a {mode} is active, and mode says {session.mode}`)
		end
	end
	local numbers: { [number]: boolean } = {}
	local before: any = nil
	for index, entry in session.history or {} do
		local place = `/session/history/{index - 1}`
		if numbers[entry.iteration] then
			add(`{place}/iteration`, `is iteration {entry.iteration} once more`)
		end
		numbers[entry.iteration] = true
		local asked, answered = #(entry.questions or {}), #(entry.responses or {})
		if answered > asked then
			add(`{place}/responses`, `has {answered} responses to {asked} questions`)
		end
		-- After `back`, an iteration goes on from any that came before.
		local delta = if before then entry.ems - before.ems else 0
		local right = entry.ems_delta == nil or entry.ems_delta == delta or (before == nil and entry.ems_delta == entry.ems)
		for earlier = 1, index - 1 do
			right = right or entry.ems_delta == entry.ems - session.history[earlier].ems
		end
		if not right then
			add(`{place}/ems_delta`, `is {entry.ems_delta}, and the EMS changed by {delta}`)
		end
		before = entry
	end
	local known, highest = ids_of_ledger(own), 0
	for index, idea in session.ideas or {} do
		local place = `/session/ideas/{index - 1}/id`
		if idea.id < highest then
			add(place, `{idea.id} comes behind {highest}`)
		end
		for missing = highest + 1, idea.id - 1 do
			if not known[missing] then
				add(place, `{highest} to {idea.id} leaves a gap`)
				break
			end
		end
		highest = math.max(highest, idea.id)
	end
	return found
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
	for _, remark in remarks(session, doc.nietz) do
		remark.severity = "note"
		table.insert(faults, remark)
	end
	return faults
end

return rules
