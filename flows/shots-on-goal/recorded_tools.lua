--!strict
--- The tools of `common/tools.lua` for a session that records each offer and each call as a row.

local git = require("@nietz/git")
local llm = require("@nietz/llm")
local record = require("./record")
local state = require("./state")
local tools = require("../common/tools")

local recorded_tools = {}

--- Records all tools that there are.
function recorded_tools.record_all(self: state.Session)
	for _, tool in tools.ALL do
		self.tools[tool.name] = record.add(self.record, "tool", {
			session_id = self.id,
			name = tool.name,
			description = tool.description,
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
	return tools.offer({
		tree = tree,
		workplace = self.workplace,
		builds = nil,
		params = self.params,
		writing = writing,
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
				tool_id = self.tools[name],
				tool_name = name,
				input = input,
				output = output,
			})
		end,
	})
end

return recorded_tools
