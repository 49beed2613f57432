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

local function curve(session: any): nietz.Block
	local steps, whole = {}, {}
	local by_axis: { [string]: { any } } = {}
	for _, entry in session.history do
		table.insert(steps, tostring(entry.iteration))
		table.insert(whole, entry.ems)
		for _, axis in AXES do
			by_axis[axis] = by_axis[axis] or {}
			table.insert(by_axis[axis], if entry.axes then entry.axes[axis] else nil)
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

local function ideas(session: any): nietz.Block
	local rows = {}
	for _, idea in session.ideas do
		table.insert(rows, { idea.id, idea.content, idea.iteration or "", idea.score or "" } :: { any })
	end
	return { type = "table", title = "Ideas", columns = { "#", "idea", "iteration", "score" }, rows = rows } :: any
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
		table.insert(blocks, curve(session))
	end
	if #(session.ideas or {}) > 0 then
		table.insert(blocks, ideas(session))
	end
	local decisions = {}
	for _, decision in (session.flow_state or {}).decisions or {} do
		table.insert(decisions, `- {decision.text}`)
	end
	if #decisions > 0 then
		table.insert(blocks, { type = "text", title = "Decided", text = table.concat(decisions, "\n") } :: any)
	end
	local events = {}
	for _, entry in session.history or {} do
		for index, question in entry.questions or {} do
			local answer = (entry.responses or {})[index]
			local said = if answer ~= nil then `{question}\n\n> {answer}` else question
			table.insert(events, { at = `iteration {entry.iteration}`, who = entry.persona, text = said })
		end
	end
	if #events > 0 then
		table.insert(blocks, { type = "timeline", title = "Questions and answers", events = events } :: any)
	end
	return blocks
end

return report
