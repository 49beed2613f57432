--!strict
--- The tools that models work with in a worktree, and the limits on their calls. Which tools a model is offered depends on
--- whether it may write.

local failure = require("./failure")
local json = require("@nietz/json")
local kit = require("./tools/kit")
local llm = require("@nietz/llm")
local own_paths = require("./tools/own_paths")
local reading = require("./tools/reading")
local running = require("./tools/running")
local searching = require("./tools/searching")
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

--- What a model is told whose path does not exist, where nothing is called so.
local OTHERWISE = "find_files, list_folder and list_tree show what does"

--- Takes over what an exchange has used up to now.
function tools.count(used: Usage, so_far: llm.SoFar)
	used.input, used.output, used.cached = so_far.usage.input, so_far.usage.output, so_far.usage.cached
	used.cost = so_far.cost
end

--- How many calls or turns are left when a model is told so.
local WARN_AT = { 10, 3 }

--- Nothing used; see `kit.usage`.
tools.usage = kit.usage
--- The tokens as limits count them; see `kit.counted_tokens`.
tools.counted_tokens = kit.counted_tokens

--- Returns a function that says what is left of calls and turns, where the model is to be told so now; else "".
local function warner(params: { [string]: any }, used: Usage): () -> string
	local told: { [string]: boolean } = {}
	return function(): string
		local parts = {}
		local function look(name: string, count: number, most: number)
			local key = `{name} {most - count}`
			if table.find(WARN_AT, most - count) ~= nil and not told[key] then
				told[key] = true
				table.insert(parts, `{most - count} of {most} {name} are left`)
			end
		end
		look("tool calls", used.calls, params.max_tools)
		look("turns", used.turns, params.max_turns)
		return if #parts > 0 then `\n[{table.concat(parts, ", ")}: bring what is begun to an end that validates]` else ""
	end
end

--- Returns the tools for one model at work, and the function that takes calls which reach none of them. Each call is counted
--- in `used`.
function tools.offer(offer: Offer): ({ [string]: llm.Tool }, (call: llm.Call, why: string, so_far: llm.SoFar) -> ())
	local used, params = offer.used, offer.params
	local warned = false
	local warning = warner(params, used)
	local desk: kit.Desk = { offer = offer, seen = {}, outputs = {}, ran = 0, looked_at = nil }
	--- Counts a call and returns its number, or ends the attempt where a limit is reached. A model that only reads is first
	--- told, once, to answer from what it has seen: nil.
	local function admit(name: string, so_far: llm.SoFar): number?
		tools.count(used, so_far)
		if used.calls >= params.max_tools then
			if offer.writing or warned then
				llm.stop("calls")
			end
			warned = true
			return nil
		end
		if used.turns > params.max_turns then
			llm.stop("turns")
		end
		if kit.counted_tokens(used) > params.attempt_tokens then
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
	--- The commands that exited with 0 since something was written.
	local passing: { [string]: boolean } = {}
	local function run_tool(tool: Tool, arguments: Arguments): string
		arguments = own_paths.relative(offer, arguments)
		local question = `{tool.name} {json.encode(arguments)}`
		if asked[question] then
			error("you have asked just this already, and nothing has changed since: the answer is above. Go on with it", 0)
		end
		local output = tool.run(offer.tree, arguments, desk.seen, desk)
		if not tool.writes then
			asked[question] = true
			return output
		end
		table.clear(asked)
		used.written += 1
		if tool.name ~= "run" or not offer.writing then
			table.clear(passing)
			return output
		end
		if table.find(offer.validates, arguments.command) == nil then
			-- It may have changed what the others have looked at.
			table.clear(passing)
			return output
		end
		passing[arguments.command] = string.find(output, "^exit code 0\n") ~= nil and not running.is_marked(output)
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
		local for_runs = tool.name == "run" or tool.name == "read_output"
		if for_runs and not (offer.writing or offer.running) or tool.writes and not offer.writing and not for_runs then
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
					raised =
						{ code = raised.code, message = raised.message, hint = searching.hint(offer.tree, arguments, raised, OTHERWISE) }
					raised.message ..= (if raised.hint then "; " .. raised.hint else "") .. warning()
					raised.hint = nil
					offer.on_call(order, tool.name, arguments, "error: " .. raised.message)
					error(raised, 0)
				end
				shown ..= warning()
				offer.on_call(order, tool.name, arguments, shown)
				return shown
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
