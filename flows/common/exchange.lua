--!strict
--- One exchange with a model that works with tools: its limits, and how it ended.

local failure = require("./failure")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local tools = require("./tools")

local exchange = {}

--- What goes wrong around an attempt, and says nothing about it.
local NOT_THE_ATTEMPT_S = {
	"key-missing",
	"key-refused",
	"model-overloaded",
	"model-unknown",
	"model-unreachable",
}

--- Calls a model within `params.attempt_seconds`, `idle`, `max_tools`, `attempt_tokens` and `attempt_cost`; returns
--- how it ended (`completed`, `tool_limit`, `timeout` or `error`), a detail, and the reply. What it used is put in `used`.
--- The model must look at something before it answers; one that may write and ends without having written is told so once.
function exchange.run(params: nietz.Values, request: llm.Chat, used: tools.Used): (string, string, llm.Reply?)
	-- The limit of calls ends it long before.
	request.rounds = 1000
	request.tool_choice = "required"
	local told = false
	if request.schema == nil then
		request.check = function(): string?
			if used.written > 0 or told then
				return nil
			end
			told = true
			return "no file has changed, so nothing is done yet. Use the tools to change the files; if you cannot, say what stands in the way"
		end
	end
	local ok, reply = pcall(task.limit, params.attempt_seconds, function()
		return task.idle(params.idle, function()
			return llm.chat(request)
		end)
	end)
	if ok then
		used.input, used.output, used.cached = reply.usage.input, reply.usage.output, reply.usage.cached
		used.cost = reply.cost
		if reply.stopped == "tool_limit" then
			return "tool_limit", `the limit of {params.max_tools} tool calls`, reply
		elseif reply.stopped == "tokens" then
			return "error", `the limit of {params.attempt_tokens} tokens`, reply
		elseif reply.stopped == "cost" then
			local why = if reply.cost
				then `the limit of {params.attempt_cost} US dollars`
				else "its cost is limited, and the price is not known"
			return "error", why, reply
		end
		return "completed", reply.text, reply
	end
	if failure.is(reply, NOT_THE_ATTEMPT_S) then
		-- The run ends here, and resuming goes on with this very call.
		error(reply, 0)
	end
	return if failure.is(reply, "timed-out") then "timeout" else "error", failure.of(reply).message, nil
end

return exchange
