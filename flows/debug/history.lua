--!strict
--- The earlier turns as messages for the model: all of them while they fit, then a summary and the last eight.

local app = require("./app")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local session = require("./session")
local stack_trace = require("./stack_trace")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local history = {}

--- Where a call takes more than this part of the context window, older turns are summarised.
local WINDOW_SHARE = 0.8
--- How many of the last turns are never summarised.
local KEPT_TURNS = 8

--- Returns the conversation so far as messages, oldest first, without the last response: the caller adds it with its notes.
function history.messages(self: app.App): { llm.Message }
	local doc = self.doc
	local problem = template.render("./prompts/problem.md", {
		problem = stack_trace.shorten(doc.problemDescription),
		summary = self.summary or false,
	})
	local messages: { llm.Message } = { { role = "user", content = problem } }
	for index = self.summarised_turns + 1, #doc.transcript do
		local turn = doc.transcript[index]
		table.insert(messages, { role = "assistant", content = turn.question })
		if index < #doc.transcript then
			table.insert(messages, { role = "user", content = stack_trace.shorten(turn.response) })
		end
	end
	return messages
end

--- Returns about how many tokens a call with this system message would take.
function history.token_count(system: string, messages: { llm.Message }): number
	local tokens = llm.count(system)
	for _, message in messages do
		tokens += llm.count(message.content) + 4
	end
	return tokens
end

--- Summarises the older turns where they fill the window. `size` says how many tokens the next call would take.
function history.summarise(self: app.App, size: number)
	local last = #self.doc.transcript - KEPT_TURNS
	if size < WINDOW_SHARE * self.context_tokens or last <= self.summarised_turns then
		return
	end
	local turns: { session.Turn } = json.array({})
	for index = self.summarised_turns + 1, last do
		table.insert(turns, self.doc.transcript[index])
	end
	local reply = llm.chat({
		prompt = template.render("./prompts/summarise.md", {
			problem = stack_trace.shorten(self.doc.problemDescription),
			summary = self.summary or false,
			turns = turns,
		}),
		label = self.t("doing.summarising"),
		temperature = 0,
	})
	if self.summary == nil then
		ui.say(self.t("history.shortened", { kept = KEPT_TURNS }))
	end
	self.summary = reply.text
	self.summarised_turns = last
end

return history
