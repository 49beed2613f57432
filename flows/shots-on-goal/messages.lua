--!strict
--- What the commits of a session say: a short first line, the goal, what the model said, and lines that programs can read.

local commit_text = require("../common/commit_text")
local state = require("./state")

local messages = {}

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
	local body = { commit_text.wrapped(goal.text), commit_text.wrapped(said) }
	return message(self, commit_text.subject(goal.text), body, {
		`Goal: {goal.id}`,
		`Attempt: {attempt.id} by {attempt.model}, {status}`,
	})
end

--- Returns the message of a merge into a goal's branch.
function messages.merge(self: state.Session, into: state.Goal, what: string): string
	return message(self, commit_text.subject(what), { commit_text.wrapped(into.text) }, { `Goal: {into.id}` })
end

--- Returns the message of all that a session has brought, as one commit.
function messages.squash(self: state.Session, root: state.Goal): string
	return message(self, commit_text.subject(root.text), { commit_text.wrapped(root.text) }, { `Goal: {root.id}` })
end

return messages
