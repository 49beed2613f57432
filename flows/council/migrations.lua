--!strict
--- Brings sessions from before the key `nietz` up to it: what stood in `metadata` without being of the specification moves there,
--- and what a skipped question left assumed names that question.

local json = require("@nietz/json")
local session = require("./session")

local migrations = {}

--- The fields of ours that sessions had before there was a key for them.
migrations.FORMERLY = { "/metadata/remarks", "/metadata/measures", "/metadata/opening", "/metadata/correlationId" }

--- Names the question in what was assumed in its place.
local function name_questions(doc: session.Values)
	local text_of: { [string]: string } = {}
	for _, question in doc.clarificationQuestions or {} :: { session.Values } do
		text_of[question.questionId] = question.question
	end
	local function named(line: string, id: string?): string
		local question = if id ~= nil then text_of[id] else nil
		return if question ~= nil and string.find(line, question, 1, true) == nil then `{line} (asked: "{question}")` else line
	end
	for _, assumption in doc.assumptionLog or {} :: { session.Values } do
		assumption.assumption = named(assumption.assumption, assumption.relatedQuestion)
	end
	for _, turn in doc.messageTurns or {} :: { session.Values } do
		if turn.messageType == "assumption_statement" then
			turn.content = named(turn.content, (turn.metadata or {}).questionId)
		end
	end
end

--- Returns a session without our key as one of version 1.
function migrations.to_1(doc: session.Values): session.Values
	doc.nietz = { version = 1, ledger = { last = 0, entries = json.array({}) }, files = json.array({}) }
	local metadata = doc.metadata or {}
	local said: { session.Values } = json.array({})
	for _, remark in metadata.remarks or {} :: { session.Values } do
		table.insert(said, { text = remark.text, after = remark.after, at = remark.at })
	end
	metadata.remarks = nil
	for index, turn in doc.messageTurns or {} :: { session.Values } do
		local meta = turn.metadata or {}
		if meta.asked ~= nil then
			table.insert(said, { text = meta.asked, to = turn.sender.name, after = index - 1, at = turn.timestamp })
			meta.asked = nil
		end
	end
	doc.nietz.said = if #said > 0 then said else nil
	name_questions(doc)
	return doc
end

migrations.all = { [""] = migrations.to_1 }

return migrations
