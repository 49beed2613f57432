--!strict
--- What `nietz report` shows of a brainstorm: how ripe it became, the ideas and decisions, and the brief.

local nietz = require("@nietz")

local report = {}

--- The axes of the measure, in the order of the specification.
local AXES = { "clarity", "depth", "coverage", "decisions", "action" }

--- Returns the last document of a collection that the run wrote.
local function latest(run: nietz.Recorded, collection: string): any
	local documents = run.documents[collection]
	return if documents ~= nil and #documents > 0 then documents[#documents].value else nil
end

local function curve(document: any): nietz.Block
	local session = document.session
	local axes_of: { [number]: any } = {}
	for _, began in (document.nietz or {}).iterations or {} do
		axes_of[began.iteration] = began.axes
	end
	local steps, whole = {}, {}
	local by_axis: { [string]: { any } } = {}
	for _, entry in session.history do
		table.insert(steps, tostring(entry.iteration))
		table.insert(whole, entry.ems)
		for _, axis in AXES do
			by_axis[axis] = by_axis[axis] or {}
			local axes = axes_of[entry.iteration]
			table.insert(by_axis[axis], if axes then axes[axis] else nil)
		end
	end
	local lines = { { name = "EMS", values = whole } }
	for _, axis in AXES do
		if #by_axis[axis] == #steps then
			table.insert(lines, { name = axis, values = by_axis[axis] })
		end
	end
	return { type = "curve", title = "How ripe it was, by iteration (of 100)", steps = steps, lines = lines, most = 100 } :: any
end

--- Returns what the ledger has: what holds, and what was taken back.
local function noted(book: any): nietz.Block
	local gone: { [number]: boolean } = {}
	for _, entry in book.entries do
		if entry.of ~= nil then
			gone[entry.of] = true
		end
	end
	local rows = {}
	for _, entry in book.entries do
		local state = if gone[entry.id] then "taken back" else ""
		table.insert(rows, { entry.id, entry.kind, entry.text, entry.by, entry.turn, state } :: { any })
	end
	local columns = { "#", "kind", "what", "who", "iteration", "state" }
	return { type = "table", title = "Noted", columns = columns, rows = rows } :: any
end

--- Returns the blocks of a brainstorm.
function report.blocks(run: nietz.Recorded): { nietz.Block }
	local document = latest(run, "sessions") or latest(run, "rescued")
	if document == nil then
		return {}
	end
	local session = document.session
	local blocks: { nietz.Block } = {}
	local brief = latest(run, "briefs")
	table.insert(
		blocks,
		{
			type = "cards",
			cards = {
				{ name = "Ripe", value = `{session.ems} of 100` },
				{ name = "Iterations", value = session.iteration },
				{ name = "Mode", value = session.mode },
				{ name = "Status", value = session.status },
			},
		} :: any
	)
	if type(brief) == "string" then
		table.insert(blocks, { type = "text", title = "The brief", text = brief } :: any)
	end
	if #(session.history or {}) > 1 then
		table.insert(blocks, curve(document))
	end
	local book = (document.nietz or {}).ledger
	if book ~= nil and #book.entries > 0 then
		table.insert(blocks, noted(book))
	end
	-- Questions and answers stand in the conversation below.
	return blocks
end

return report
