--!strict
--- The tools of `common/tools.lua` for a session that records each offer and each call as a row.

local git = require("@nietz/git")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local record = require("./record")
local state = require("./state")
local text = require("@nietz/text")
local tools = require("../common/tools")

local recorded_tools = {}

--- Returns what tells one implementation of a tool from another, as far as models see it.
local function version_of(tool: tools.Tool): string
	return text.sha256(tool.description .. "\n" .. json.encode(tool.parameters))
end

--- Records all tools that there are.
function recorded_tools.record_all(self: state.Session)
	for _, tool in tools.ALL do
		self.tools[tool.name] = record.add(self.record, "tool", {
			session_id = self.id,
			name = tool.name,
			description = tool.description,
			version = version_of(tool),
		})
	end
end

--- Returns the tools for one attempt of a session, whose calls are recorded.
function recorded_tools.offer(
	self: state.Session,
	attempt: number,
	tree: git.Handle,
	writing: boolean,
	validates: { string },
	on_progress: (what: string) -> (),
	used: tools.Usage
): ({ [string]: llm.Tool }, (call: llm.Call, why: string, so_far: llm.SoFar) -> ())
	-- A name that a model has invented gets a row, too, so that each call has its tool.
	local invented: { [string]: number } = {}
	local function tool_id(name: string): number
		local id = self.tools[name] or invented[name]
		if id == nil then
			id = record.add(self.record, "tool", {
				session_id = self.id,
				name = name,
				description = "There is no such tool: a model has called it all the same.",
			})
			invented[name] = id
		end
		return id
	end
	return tools.offer({
		tree = tree,
		workplace = self.workplace,
		builds = nil,
		params = self.params,
		writing = writing,
		running = true,
		protected = { start = self.start_commit, globs = self.guards.globs },
		validates = validates,
		on_progress = on_progress,
		used = used,
		on_tool = function(name: string)
			record.add(self.record, "attempt_tool", { attempt_id = attempt, tool_id = self.tools[name] })
		end,
		on_call = function(order: number, name: string, input: any, output: string)
			record.add(self.record, "tool_call", {
				attempt_id = attempt,
				order = order,
				tool_id = tool_id(name),
				tool_name = name,
				input = input,
				output = output,
			})
		end,
	})
end

return recorded_tools
