--!strict
--- What the model is told of the earlier turns: all of them while they fit, and then a summary and the last eight.

local app = require("./app")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local session = require("./session")
local template = require("@nietz/template")
local trace = require("./trace")

local history = {}

--- From this part of the model's window on, older turns are summarised.
local FULL = 0.8
--- So many turns stay as they are.
local KEPT = 8

--- Returns the exchange so far, oldest first, the last response left out: that comes with the notes.
function history.messages(self: app.App): { llm.Message }
	local doc = self.doc
	local problem = template.render("./prompts/problem.md", {
		problem = trace.reduce(doc.problemDescription),
		summary = self.summary or false,
	})
	local messages: { llm.Message } = { { role = "user", content = problem } }
	for index = self.summarised + 1, #doc.transcript do
		local turn = doc.transcript[index]
		table.insert(messages, { role = "assistant", content = turn.question })
		if index < #doc.transcript then
			table.insert(messages, { role = "user", content = trace.reduce(turn.response) })
		end
	end
	return messages
end

--- Returns about how many tokens a call with this system message would take.
function history.size(system: string, messages: { llm.Message }): number
	local tokens = llm.count(system)
	for _, message in messages do
		tokens += llm.count(message.content) + 4
	end
	return tokens
end

--- Summarises the older turns where they fill the window. `size` says how many tokens the next call would take.
function history.shorten(self: app.App, size: number)
	local last = #self.doc.transcript - KEPT
	if size < FULL * self.window or last <= self.summarised then
		return
	end
	local turns: { session.Turn } = json.array({})
	for index = self.summarised + 1, last do
		table.insert(turns, self.doc.transcript[index])
	end
	local reply = llm.chat({
		prompt = template.render("./prompts/summarise.md", {
			problem = trace.reduce(self.doc.problemDescription),
			summary = self.summary or false,
			turns = turns,
		}),
		label = self.t("doing.summarising"),
		max_tokens = 400,
		temperature = 0,
	})
	self.summary = reply.text
	self.summarised = last
end

return history
