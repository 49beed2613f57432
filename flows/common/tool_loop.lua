--!strict
--- Lets a model work with tools until it is done or reaches a limit, and tells how it ended. Apart, because attempts,
--- analyses and fixes of two modes are all made this way.

local failure = require("./failure")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local tools = require("./tools")

local tool_loop = {}

--- Failures that are not the attempt's own: the run ends with them, and can be resumed.
local ENDS_THE_RUN = {
	"key-missing",
	"key-refused",
	"model-overloaded",
	"model-unknown",
	"model-unreachable",
}

--- Calls a model within `params.attempt_seconds`, `idle`, `max_tools`, `attempt_tokens` and `attempt_cost`; returns
--- how it ended (`completed`, `tool_limit`, `timeout` or `error`), a detail, and the reply. What it used is added to `used`.
--- The model must call a tool before it answers. One that was to change files and stops without a change is told so, once.
function tool_loop.run(params: nietz.Values, request: llm.Chat, used: tools.Usage): (string, string, llm.Reply?)
	-- More than any limit of tool calls, so that those limits end the loop.
	request.rounds = 1000
	request.tool_choice = "required"
	local reminded = false
	if request.schema == nil then
		request.check = function(): string?
			if used.written > 0 or reminded then
				return nil
			end
			reminded = true
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
	if failure.is(reply, ENDS_THE_RUN) then
		-- The run ends here, and resuming goes on with this very call.
		error(reply, 0)
	end
	return if failure.is(reply, "timed-out") then "timeout" else "error", failure.of(reply).message, nil
end

return tool_loop
