--!strict
--- What the commits of a session say: a short first line, the goal, what the model said, and lines that programs can read.

local state = require("./state")
local text = require("@nietz/text")

local messages = {}

--- The longest first line and the widest other line of a message, in letters.
local WIDEST_SUBJECT, WIDEST = 72, 72
--- How much of a goal and of what a model said is kept, in bytes.
local MOST = 4000

--- Returns the first line of a text as the first line of a commit.
function messages.subject(said: string): string
	return text.truncate(string.gsub(text.lines(text.trim(said))[1] or "", "%s+", " "), WIDEST_SUBJECT)
end

--- Returns a text in lines that are not too wide, broken between words.
local function wrapped(said: string): string
	local lines: { string } = {}
	for _, line in text.lines(text.trim(text.truncate(said, MOST))) do
		local current = ""
		for word in string.gmatch(line, "%S+") do
			if current ~= "" and text.width(current) + 1 + text.width(word) > WIDEST then
				table.insert(lines, current)
				current = word
			else
				current = if current == "" then word else `{current} {word}`
			end
		end
		table.insert(lines, current)
	end
	return table.concat(lines, "\n")
end

--- Puts a message together: the body is left out where the subject says it all.
local function message(self: state.Session, subject: string, body: { string }, trailers: { string }): string
	local parts = { subject }
	for _, part in body do
		if part ~= "" and part ~= subject then
			table.insert(parts, part)
		end
	end
	local last = table.clone(trailers)
	table.insert(last, 1, `Session: {self.name}`)
	for _, who in self.params.co_authored_by or {} do
		table.insert(last, `Co-authored-by: {who}`)
	end
	table.insert(parts, table.concat(last, "\n"))
	return table.concat(parts, "\n\n")
end

--- Returns the message of an attempt's work; `said` is what the model said at its end.
function messages.attempt(
	self: state.Session,
	goal: state.Goal,
	attempt: { id: number, model: string },
	status: string,
	said: string
): string
	local body = { wrapped(goal.text), wrapped(said) }
	return message(self, messages.subject(goal.text), body, {
		`Goal: {goal.id}`,
		`Attempt: {attempt.id} by {attempt.model}, {status}`,
	})
end

--- Returns the message of a merge into a goal's branch.
function messages.merge(self: state.Session, into: state.Goal, what: string): string
	return message(self, messages.subject(what), { wrapped(into.text) }, { `Goal: {into.id}` })
end

--- Returns the message of all that a session has brought, as one commit.
function messages.squash(self: state.Session, root: state.Goal): string
	return message(self, messages.subject(root.text), { wrapped(root.text) }, { `Goal: {root.id}` })
end

return messages
