--!strict
--- What a large mind reads before each task: the subject, what the project says, and the whole conversation with what was noted of
--- it. It only grows at its end, and its words are the same for whoever speaks, so that providers keep it in their caches. Pure.

local about = require("../common/about")
local ledger = require("../common/ledger")
local session = require("./session")
local template = require("@nietz/template")

local transcript = {}

--- The notes that are a part of the conversation, and what stands before each.
local NOTES: { [string]: string } = {
	user = "The user",
	aside = "Asked apart",
	security = "A threat",
	spike = "An experiment",
	rivals = "What people do today",
	lookups = "To be looked up",
	ways = "A direction to look in",
}

local function entry_line(entry: ledger.Entry): string
	if entry.kind == "revocation" then
		return `#{entry.id} takes away #{entry.of} ({entry.text})`
	end
	local by = if entry.by == "user" then "" else `, {entry.by}`
	return `#{entry.id} {entry.kind}{by}: {entry.text}`
end

local function add_round(lines: { string }, kind: string, one: any)
	table.insert(lines, `{if kind == "party" then "Party" else "Panel"}, round {one.round}, on: {one.topic}`)
	for _, contribution in one.contributions do
		local who = contribution.persona or contribution.expert
		for _, point in contribution.key_points or { contribution.position } do
			table.insert(lines, `- {who}: {point}`)
		end
	end
end

local function add_turn(lines: { string }, doc: session.Doc, number: number, entry: any, read_alone: boolean)
	local s = doc.session
	table.insert(lines, if number == 0 then "## Before the first questions" else `## Iteration {number}`)
	local before = #lines
	local began = session.began(doc, number)
	local most = if read_alone then (if began then began.read or 0 else 0) else math.huge
	local responses: { string } = if entry then entry.responses else {}
	for index, response in responses do
		if index <= most then
			table.insert(lines, `Q: {entry.questions[index]}`)
			table.insert(lines, `A: {if response == "" then "(left open)" else response}`)
		end
	end
	for _, held in doc.nietz.rounds do
		local history = if held.kind == "party" then s.party_history else s.panel_history
		local one = history[held.round]
		if held.iteration == number and one ~= nil then
			add_round(lines, held.kind, one)
		end
	end
	for _, note in doc.nietz.notes do
		local title = NOTES[note.kind or ""]
		local unread = read_alone and note.kind == "user" and not note.read
		if note.iteration == number and title ~= nil and not unread then
			if note.about ~= nil then
				table.insert(lines, `Q: {note.about}`)
			end
			local who = if note.by then `{note.by}` elseif note.about then "A" else title
			table.insert(lines, `{who}: {note.text}`)
		end
	end
	local noted = ledger.of_turn(doc.nietz.ledger, number)
	if #noted > 0 then
		table.insert(lines, "Noted:")
		for _, item in noted do
			table.insert(lines, entry_line(item))
		end
	end
	if #lines == before then
		table.remove(lines)
	else
		table.insert(lines, "")
	end
end

--- Returns the conversation up to where the session stands, or up to what the ledger has. What a `back` left is not in it.
function transcript.turns(doc: session.Doc, read_alone: boolean?): string
	local lines: { string } = {}
	add_turn(lines, doc, 0, nil, read_alone == true)
	for _, entry in session.counted_history(doc) do
		add_turn(lines, doc, entry.iteration, entry, read_alone == true)
	end
	return table.concat(lines, "\n")
end

--- Returns all of it, as it stands before each task.
function transcript.render(doc: session.Doc, kind: string?, reading: about.Reading, read_alone: boolean?): string
	return template.render("./prompts/large/context.md", {
		topic = doc.nietz.topic,
		template = kind or "",
		files = reading.files,
		turns = transcript.turns(doc, read_alone),
	})
end

return transcript
