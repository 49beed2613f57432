--!strict
--- Lets a model work with tools until it is done or reaches a limit, and tells how it ended. Apart, because attempts,
--- analyses and fixes of two modes are all made this way.

local failure = require("./failure")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local tools = require("./tools")
local ui = require("@nietz/ui")

local tool_loop = {}

--- Failures that are not the attempt's own: the run ends with them, and can be resumed.
local ENDS_THE_RUN = {
	"key-missing",
	"key-refused",
	"model-overloaded",
	"model-unknown",
	"model-unreachable",
}

--- What `task.idle` says where nothing came: a model that was silent.
local SILENT = "^nothing happened for "

--- How the detail of an attempt names the limit that a tool has stopped it by.
local LIMITS: { [string]: (params: nietz.Values, cost: number?) -> string } = {
	calls = function(params)
		return `the limit of {params.max_tools} tool calls`
	end,
	turns = function(params)
		return `the limit of {params.max_turns} turns of the model`
	end,
	tokens = function(params)
		return `the limit of {params.attempt_tokens} tokens`
	end,
	cost = function(params, cost)
		return if cost then `the limit of {params.attempt_cost} US dollars` else "its cost is limited, and the price is not known"
	end,
}

--- Returns how an exchange that failed has ended, and a detail; raises the failure again where the run ends with it.
local function ending_of(params: nietz.Values, raised: any, used: tools.Usage): (string, string)
	if failure.is(raised, ENDS_THE_RUN) then
		-- The run ends here, and resuming goes on with this very call.
		error(raised, 0)
	end
	local message = failure.of(raised).message
	if failure.is(raised, "stopped") then
		used.ended_by = "stopped"
		return "stopped", message
	end
	if not failure.is(raised, "timed-out") then
		return "error", message
	elseif string.find(message, SILENT) ~= nil then
		used.ended_by = "silence"
		return "timeout", message
	end
	used.ended_by = "seconds"
	return "tool_limit", `the limit of {params.attempt_seconds} seconds`
end

--- Calls a model within `params.attempt_seconds`, `idle`, `max_tools`, `max_turns`, `attempt_tokens` and `attempt_cost`; returns
--- how it ended (`completed`; `tool_limit` by any limit; `timeout` where the model was silent; `stopped` by the flow; `error`), a detail, and
--- the reply.
--- What it used is added to `used`, also where it fails. A model with tools must call one before it answers. One that was to change
--- files and stops without a change is told so, once.
function tool_loop.run(params: nietz.Values, request: llm.Chat, used: tools.Usage): (string, string, llm.Reply?)
	-- More than any limit of tool calls, so that those limits end the loop.
	request.rounds = 1000
	request.tool_choice = if request.tools ~= nil then "required" else nil
	request.on_reply = function(so_far: llm.SoFar)
		used.turns += 1
		tools.count(used, so_far)
	end
	request.left_out = function(results: number, bytes: number)
		used.left_out += results
		ui.say(`{request.label or "model"}: the window is nearly full. {results} older results of tools ({bytes} bytes) are left out`)
	end
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
	if not ok then
		local status, detail = ending_of(params, reply, used)
		return status, detail, nil
	end
	local limit = reply.stopped
	if limit ~= nil and LIMITS[limit] ~= nil then
		used.ended_by = limit
		return "tool_limit", LIMITS[limit](params, reply.cost), reply
	end
	return "completed", reply.text, reply
end

return tool_loop
