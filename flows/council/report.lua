--!strict
--- What `nietz report` shows of a council: the decision, who stood where in each cycle, and what they disagreed on.

local nietz = require("@nietz")

local report = {}

type Position = { name: string, option: string?, confidence: number }
type Measure = { cycle: number, positions: { Position }, support: { [string]: number }, new: number, said: number, moved: { any } }

local function text_of(note: any): string
	local names = {}
	for _, from in note.from or {} do
		table.insert(names, from.name)
	end
	return if #names > 0 then `{note.text} ({table.concat(names, ", ")})` else note.text
end

--- Adds a list of notes as a text block, where there are any.
local function add_notes(blocks: { nietz.Block }, title: string, notes: { any }?)
	local lines = {}
	for _, note in notes or {} :: { any } do
		table.insert(lines, `- {text_of(note)}`)
	end
	if #lines > 0 then
		table.insert(blocks, { type = "text", title = title, text = table.concat(lines, "\n") } :: any)
	end
end

--- Returns who stood for what in each cycle, a change marked by an arrow.
local function positions(measures: { Measure }): nietz.Block
	local columns, rows, row_of = { "" }, {} :: { { any } }, {} :: { [string]: { any } }
	local before: { [string]: string } = {}
	for index, measure in measures do
		table.insert(columns, `cycle {measure.cycle}`)
		for _, position in measure.positions do
			local row = row_of[position.name]
			if row == nil then
				row = { position.name }
				for _ = 2, index do
					table.insert(row, "")
				end
				row_of[position.name] = row
				table.insert(rows, row)
			end
			local option = position.option or "undecided"
			local moved = if before[position.name] ~= nil and before[position.name] ~= option then "→ " else ""
			before[position.name] = option
			table.insert(row, `{moved}{option} ({position.confidence})`)
		end
	end
	for _, row in rows do
		while #row < #columns do
			table.insert(row, "")
		end
	end
	return { type = "table", title = "Who stood where (confidence of 100)", columns = columns, rows = rows } :: any
end

--- Returns how the confidence was shared between the options, cycle by cycle.
local function support(measures: { Measure }, options: { { id: string, text: string, name: string? } }): nietz.Block
	local steps, lines = {}, {}
	for _, measure in measures do
		table.insert(steps, `cycle {measure.cycle}`)
	end
	for _, option in options do
		local values = {}
		for _, measure in measures do
			table.insert(values, measure.support[option.id] or 0)
		end
		table.insert(lines, { name = `{option.id} {option.name or option.text}`, values = values })
	end
	return { type = "curve", title = "Share of the confidence, in percent", steps = steps, lines = lines, most = 100 } :: any
end

--- Returns the session that a run wrote or gave back.
local function session_of(run: nietz.Recorded): any
	for _, documents in run.documents do
		for _, document in documents do
			if type(document.value) == "table" and document.value.councilDiscussions ~= nil then
				return document.value
			end
		end
	end
	return run.result
end

--- Returns the blocks of a council.
function report.blocks(run: nietz.Recorded): { nietz.Block }
	local session = session_of(run)
	if type(session) ~= "table" or type(session.metadata) ~= "table" then
		return {}
	end
	local metadata = session.metadata
	local decision, measures = metadata.decision or {}, (metadata.measures or {}) :: { Measure }
	local blocks: { nietz.Block } = {}
	if type(session.finalAnswer) == "string" then
		table.insert(blocks, { type = "text", title = "The answer", text = session.finalAnswer } :: any)
	end
	local cards: { any } = {
		{ name = "Outcome", value = metadata.outcome or session.status },
		{ name = "Cycles", value = session.debateCycles or 0 },
		{ name = "Questions asked first", value = #(session.clarificationQuestions or {}) },
	}
	local carried = decision.carried
	if carried ~= nil then
		table.insert(cards, { name = "Carried by", value = `{carried.by} of {carried.of}`, note = `with confidence {carried.confidence}` })
	end
	if decision.composed then
		table.insert(
			cards,
			{ name = "Written by", value = "nobody", note = "composed from positions: the moderator's reply could not be used" }
		)
	end
	table.insert(blocks, { type = "cards", title = "The council", cards = cards } :: any)
	if #measures > 0 then
		table.insert(blocks, positions(measures))
		if #measures > 1 then
			table.insert(blocks, support(measures, metadata.options or {}))
		end
		local rows = {}
		for _, measure in measures do
			table.insert(rows, { measure.cycle, measure.said, measure.new, #measure.moved } :: { any })
		end
		local columns = { "cycle", "points", "new ones", "members who moved" }
		table.insert(blocks, { type = "table", title = "How much each cycle brought", columns = columns, rows = rows } :: any)
	end
	-- The answer tells all of it; only where there is none yet its parts are told.
	if type(session.finalAnswer) ~= "string" then
		add_notes(blocks, "Why", decision.reasons)
		add_notes(blocks, "What speaks against it", decision.tradeoffs)
		add_notes(blocks, "Who disagrees", decision.minorityReports)
		add_notes(blocks, "Still open", decision.open)
	end
	for _, former in (session.nietz or {}).former or {} :: { any } do
		add_notes(blocks, "Concluded before that", { former.decision.decision })
	end
	return blocks
end

return report
