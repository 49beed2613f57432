--!strict
--- What `nietz report` shows of a debugging session: how it ended, what is known of the bug, each turn with its tags, how
--- the developer reasoned, and how that went over their sessions.

local nietz = require("@nietz")

local report_blocks = {}

--- The dimensions of the scores, in the order of the specification, with their names.
local SCORES = {
	{ name = "assumptions checked", field = "assumptionChecking" },
	{ name = "evidence gathered", field = "evidenceGathering" },
	{ name = "speed to the root cause", field = "rootCauseSpeed" },
}

--- How many sessions a curve shows.
local MOST_SESSIONS = 20

--- What stands in the ledger, with the titles of its parts.
local LEDGER = {
	{ title = "Seen", field = "seen" },
	{ title = "Believed", field = "believed" },
	{ title = "Ruled out", field = "ruled_out" },
}

local function score_bars(session: any, own: any): nietz.Block
	local bars = {}
	for _, score in SCORES do
		local why = (own.scores or {})[score.field]
		local turns = if why ~= nil and #why.turns > 0
			then ` ({if #why.turns == 1 then "turn" else "turns"} {table.concat(why.turns, ", ")})`
			else ""
		local note = if why ~= nil then why.reason .. turns else nil
		table.insert(bars, { name = score.name, value = session.skillScores[score.field], note = note })
	end
	return { type = "bars", title = "How it was reasoned (of 10)", bars = bars, most = 10 } :: any
end

local function turns(session: any): nietz.Block
	local rows = {}
	for _, turn in session.transcript do
		table.insert(rows, { turn.turnNumber, turn.question, turn.response, table.concat(turn.behaviorTags, ", ") } :: { any })
	end
	return { type = "table", title = "Turns", columns = { "#", "question", "answer", "tags" }, rows = rows } :: any
end

local function ledger(known: any): nietz.Block?
	local rows = {}
	for _, part in LEDGER do
		for _, entry in known[part.field] or {} do
			local weak = if entry.weak ~= nil then ` ({entry.weak})` else ""
			local by = if entry.by ~= nil then `turn {entry.moved}: {entry.by}` else ""
			table.insert(rows, { part.title, entry.quote .. weak, entry.evidence or `turn {entry.turn}`, by } :: { any })
		end
	end
	if #rows == 0 then
		return nil
	end
	local columns = { "", "in the developer's words", "from", "moved by" }
	return { type = "table", title = "What is known of the bug", columns = columns, rows = rows } :: any
end

--- Returns how the scores went over the last sessions that ended, this one among them, as its run found them; nil where there are
--- not two.
local function growth(run: nietz.Recorded): nietz.Block?
	local all: { any }, seen: { [string]: boolean } = {}, {}
	local scanned = (run.scanned.sessions or {}) :: { any }
	for _, found in scanned do
		local value = found.value
		local ended = value ~= nil and (value.state == nil or value.state == "ended")
		if ended and type(value.scores) == "table" and type(value.timestamp) == "string" and not seen[value.id] then
			seen[value.id] = true
			table.insert(all, value)
		end
	end
	if #all < 2 then
		return nil
	end
	table.sort(all, function(a: any, b: any): boolean
		return a.timestamp < b.timestamp or a.timestamp == b.timestamp and a.id < b.id
	end)
	local steps: { string }, lines: { any } = {}, {}
	local first = math.max(1, #all - MOST_SESSIONS + 1)
	for index = first, #all do
		table.insert(steps, string.sub(all[index].timestamp, 1, 10))
	end
	for _, score in SCORES do
		local values = {}
		for index = first, #all do
			table.insert(values, all[index].scores[score.field])
		end
		table.insert(lines, { name = score.name, values = values })
	end
	return { type = "curve", title = `Growth over {#steps} sessions (of 10)`, steps = steps, lines = lines, most = 10 } :: any
end

--- Returns the blocks of a session.
function report_blocks.of(run: nietz.Recorded): { nietz.Block }
	local sessions = run.documents.sessions
	if sessions == nil or #sessions == 0 then
		return {}
	end
	local session = sessions[#sessions].value
	local own = session.nietz or {}
	local is_open = own.state == "open"
	local cards = {
		{ name = "Outcome", value = if is_open then "open" else session.outcome },
		{ name = "Turns", value = #session.transcript },
		{ name = "Intensity", value = session.intensity },
	}
	if session.outcome == "solved" and not is_open then
		table.insert(cards, { name = "Questions to the root cause", value = session.questionsToRootCause } :: any)
	end
	if own.verification ~= nil then
		local held = if own.verification.holds then "holds" else "does not hold"
		table.insert(cards, { name = "The fix", value = held, note = own.verification.command } :: any)
	end
	local blocks: { nietz.Block } = { { type = "cards", cards = cards } :: any }
	local known = if own.ledger ~= nil then ledger(own.ledger) else nil
	if known ~= nil then
		table.insert(blocks, known)
	end
	-- A session that is open, or ended without an answer, has scores that say nothing.
	if own.state == "ended" or own.state == nil then
		table.insert(blocks, score_bars(session, own))
	end
	local grown = growth(run)
	if grown ~= nil then
		table.insert(blocks, grown)
	end
	if #session.transcript > 0 then
		table.insert(blocks, turns(session))
	end
	if own.reflection ~= nil then
		local said = `{own.reflection.question}\n\n{own.reflection.answer}`
		table.insert(blocks, { type = "text", title = "Looking back", text = said } :: any)
	end
	return blocks
end

return report_blocks
