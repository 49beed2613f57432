--!strict
--- The tools that models work with in a worktree, and the limits on their calls. Which tools a model is offered depends on
--- whether it may write.

local failure = require("./failure")
local json = require("@nietz/json")
local kit = require("./tools/kit")
local llm = require("@nietz/llm")
local reading = require("./tools/reading")
local running = require("./tools/running")
local writing = require("./tools/writing")

local tools = {}

export type Arguments = kit.Arguments
export type Usage = kit.Usage
export type Offer = kit.Offer
export type Tool = kit.Tool

--- All tools, in the order in which they are offered and recorded.
tools.ALL = {} :: { Tool }
for _, group in { reading.TOOLS, writing.TOOLS, running.TOOLS } do
	table.move(group, 1, #group, #tools.ALL + 1, tools.ALL)
end

--- Added to a result when all commands that validate pass: otherwise models go on, and spoil what they had reached.
local REACHED = "[all that validates this exits with 0 now. Unless a part of the goal is missing, call no more tools, and say what you did]"

--- Returns the tools for one model at work, and the function that takes calls which reach none of them. Each call is counted
--- in `used`.
function tools.offer(offer: Offer): ({ [string]: llm.Tool }, (call: llm.Call, why: string, so_far: llm.SoFar) -> ())
	local used, params = offer.used, offer.params
	local warned = false
	--- Counts a call and returns its number, or ends the attempt where a limit is reached. A model that only reads is first
	--- told, once, to answer from what it has seen: nil.
	local function admit(name: string, so_far: llm.SoFar): number?
		used.input, used.output, used.cached = so_far.usage.input, so_far.usage.output, so_far.usage.cached
		used.cost = so_far.cost
		if used.calls >= params.max_tools then
			if offer.writing or warned then
				llm.stop("tool_limit")
			end
			warned = true
			return nil
		end
		if used.input + used.output > params.attempt_tokens then
			llm.stop("tokens")
		end
		if params.attempt_cost ~= nil and (used.cost or math.huge) > params.attempt_cost then
			llm.stop("cost")
		end
		used.calls += 1
		offer.on_progress(`{name} ({used.calls})`)
		return used.calls
	end
	--- The calls since the last write: their answers still stand in the conversation, and hold.
	local asked: { [string]: boolean } = {}
	local seen: kit.Seen = {}
	--- The commands that exited with 0 since something was written.
	local passing: { [string]: boolean } = {}
	local function run_tool(tool: Tool, arguments: Arguments): string
		local question = `{tool.name} {json.encode(arguments)}`
		if asked[question] then
			error("you have asked just this already, and nothing has changed since: the answer is above. Go on with it", 0)
		end
		local output = tool.run(offer.tree, arguments, seen, offer)
		if not tool.writes then
			asked[question] = true
			return output
		end
		table.clear(asked)
		used.written += 1
		if tool.name ~= "run" then
			table.clear(passing)
			return output
		end
		if table.find(offer.validates, arguments.command) == nil then
			-- It may have changed what the others have looked at.
			table.clear(passing)
			return output
		end
		passing[arguments.command] = string.find(output, "^exit code 0\n") ~= nil
		for _, command in offer.validates do
			if not passing[command] then
				return output
			end
		end
		local line_end = if string.sub(output, -1) == "\n" then "" else "\n"
		return output .. line_end .. REACHED
	end
	local offered = {}
	for _, tool in tools.ALL do
		if tool.writes and not offer.writing and not (tool.name == "run" and offer.running) then
			continue
		end
		if offer.on_tool ~= nil then
			offer.on_tool(tool.name)
		end
		offered[tool.name] = {
			description = tool.description,
			parameters = tool.parameters,
			run = function(arguments: Arguments, so_far: llm.SoFar): string
				local order = admit(tool.name, so_far)
				if order == nil then
					error("no tool call is left. Answer now, from what you have seen", 0)
				end
				local ok, output = pcall(run_tool, tool, arguments)
				local shown = output
				if not ok then
					local raised = failure.of(output)
					shown = `error: {raised.message}{if raised.hint then "; " .. raised.hint else ""}`
				end
				offer.on_call(order, tool.name, arguments, shown)
				if not ok then
					error(output, 0)
				end
				return output
			end,
		}
	end
	local function rejected(call: llm.Call, why: string, so_far: llm.SoFar)
		local name = if call.name == "" then "(no name)" else call.name
		local order = admit(name, so_far)
		if order == nil then
			return
		end
		local ok, input = pcall(json.decode, call.arguments)
		local object = ok and type(input) == "table" and #input == 0
		offer.on_call(order, name, if object then input else { arguments = call.arguments }, "error: " .. why)
	end
	return offered, rejected
end

return tools
