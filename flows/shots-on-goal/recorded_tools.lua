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

--- The arguments that tell what a call is about, the first that is there.
local TELLING = { "command", "path", "from", "pattern", "glob", "test" }

--- Returns a tool's name with the file or command that a call is about.
local function activity_of(name: string, arguments: tools.Arguments): string
	for _, argument in TELLING do
		local value = arguments[argument]
		if type(value) == "string" and value ~= "" then
			return `{name} {text.truncate(string.gsub(value, "%s+", " "), 60)}`
		end
	end
	local files = arguments.files
	if type(files) == "table" and #files > 0 and type(files[1]) == "table" then
		return `{name} {files[1].path}{if #files > 1 then ` and {#files - 1} more` else ""}`
	end
	return name
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
	local function tool_id(name: string): number
		if self.tools[name] == nil then
			local id = record.add(self.record, "tool", { session_id = self.id, name = name, description = "not offered" })
			self.tools[name] = self.tools[name] or id
		end
		return self.tools[name]
	end
	--- What the call that is admitted next does.
	local activity: string? = nil
	local offered, rejected = tools.offer({
		tree = tree,
		workplace = self.workplace,
		builds = nil,
		params = self.params,
		writing = writing,
		running = true,
		protected = { start = self.start_commit, globs = self.guards.globs },
		validates = validates,
		on_progress = function(what: string)
			on_progress(if activity then `{activity} ({used.calls})` else what)
		end,
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
	for name, tool in offered do
		local run = tool.run
		tool.run = function(arguments: tools.Arguments, so_far: llm.SoFar): string
			activity = activity_of(name, arguments)
			return run(arguments, so_far)
		end
	end
	local function reject(call: llm.Call, why: string, so_far: llm.SoFar)
		activity = nil
		rejected(call, why, so_far)
	end
	return offered, reject
end

return recorded_tools
