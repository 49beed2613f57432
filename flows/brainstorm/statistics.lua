--!strict
--- Statistics of finished sessions: one row for each, and the totals that follow from the rows.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local failure = require("../common/failure")
local lang = require("./lang")
local notebook = require("./notebook")
local session = require("./session")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local statistics = {}

export type Row = {
	id: string,
	slug: string,
	finished_at: string,
	ems: number,
	iterations: number,
	minutes: number,
	ideas: number,
	decisions: number,
	party_rounds: number,
	panel_rounds: number,
	techniques: { string },
	personas: { string },
}

--- The sums of all rows.
export type Sums = {
	sessions: number,
	minutes: number,
	ems_average: number,
	iterations_average: number,
	techniques: { [string]: number },
	personas: { [string]: number },
	updated: string?,
}

local rows = documents.collection("finished")
local sums = documents.collection("statistics")

--- Returns the row of a session. Pure.
function statistics.row(doc: session.Doc, now: string): Row
	local s = doc.session
	local personas: { string } = {}
	for _, began in doc.nietz.iterations do
		local who = began.persona
		if table.find(personas, who) == nil then
			table.insert(personas, who)
		end
	end
	return {
		id = s.id,
		slug = s.slug,
		finished_at = now,
		ems = s.ems,
		iterations = #s.history,
		minutes = s.duration_minutes,
		ideas = #s.ideas,
		decisions = #notebook.holding(doc, { "decision" }),
		party_rounds = #s.party_history,
		panel_rounds = #s.panel_history,
		techniques = table.clone(s.techniques_used),
		personas = personas,
	}
end

--- Returns the sums of some rows. A session that was reopened and finished again counts once, as it was last. Pure.
function statistics.sum(all: { Row }): Sums
	local latest: { [string]: Row } = {}
	for _, row in all do
		latest[row.id] = row
	end
	local found: Sums = { sessions = 0, minutes = 0, ems_average = 0, iterations_average = 0, techniques = {}, personas = {} }
	local function count(where: { [string]: number }, names: { string })
		for _, name in names do
			where[name] = (where[name] or 0) + 1
		end
	end
	for _, row in latest do
		found.sessions += 1
		found.minutes += row.minutes
		found.ems_average += row.ems
		found.iterations_average += row.iterations
		count(found.techniques, row.techniques)
		count(found.personas, row.personas)
	end
	local function average(sum: number): number
		return if found.sessions == 0 then 0 else math.floor(sum / found.sessions * 10 + 0.5) / 10
	end
	found.ems_average, found.iterations_average = average(found.ems_average), average(found.iterations_average)
	return found
end

--- Records that a session was finished. A failure is only shown, because the session is finished all the same.
function statistics.record(t: lang.Say, doc: session.Doc)
	local ok, err = pcall(function()
		local now = clock.now()
		rows:append(statistics.row(doc, now))
		local found = statistics.sum(rows:rows())
		found.updated = now
		sums:save(found, { overwrite = true })
	end)
	if not ok then
		ui.say(t("stats.failed", { message = failure.of(err).message }))
	end
end

local function most_used(counts: { [string]: number }): string
	local names: { string } = {}
	for name in counts do
		table.insert(names, name)
	end
	table.sort(names, function(a: string, b: string): boolean
		return if counts[a] == counts[b] then a < b else counts[a] > counts[b]
	end)
	local shown: { string } = {}
	for index, name in names do
		if index <= 5 then
			table.insert(shown, `{name} {counts[name]}×`)
		end
	end
	return if #shown == 0 then "–" else table.concat(shown, ", ")
end

--- The command `stats`.
function statistics.show(t: lang.Say): Sums
	local found = statistics.sum(rows:rows())
	if found.sessions == 0 then
		ui.say(t("stats.none"))
		return found
	end
	ui.say(table.concat({
		translations.counted(t, "stats.title", found.sessions, { minutes = found.minutes } :: translations.Vars),
		"",
		"- " .. t("stats.average", { ems = found.ems_average, iterations = found.iterations_average }),
		"- " .. t("stats.techniques", { list = most_used(found.techniques) }),
		"- " .. t("stats.personas", { list = most_used(found.personas) }),
	}, "\n"))
	return found
end

return statistics
