--!strict
--- What models are asked for: an analysis, with tools that only read, and a fix.

local judge = require("./judge")
local llm = require("@nietz/llm")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local spec = require("../common/memory/spec")
local state = require("./state")
local template = require("@nietz/template")
local tool_loop = require("../common/tool_loop")
local tools = require("../common/tools")
local ui = require("@nietz/ui")

local models = {}

export type Analysis = {
	root_cause: string,
	root_cause_category: string,
	location: { file: string, line: number? },
	fix_strategy: string,
	confidence: number,
	related_failures: { string }?,
	pattern: string,
	fix_template: string,
}

--- How many failures a model is shown.
local SHOWN = 8

local ANALYSIS = {
	type = "object",
	required = { "root_cause", "root_cause_category", "location", "fix_strategy", "confidence", "pattern", "fix_template" },
	properties = {
		root_cause = { type = "string", minLength = 20 },
		root_cause_category = { enum = spec.causes },
		location = {
			type = "object",
			required = { "file" },
			properties = { file = { type = "string", minLength = 1 }, line = { type = "integer", minimum = 1 } },
		},
		fix_strategy = { type = "string", minLength = 20 },
		confidence = { type = "number", minimum = 0, maximum = 1 },
		related_failures = { type = "array", items = { type = "string" }, maxItems = 50 },
		pattern = { type = "string", minLength = 3, maxLength = 60, pattern = "^[a-z][a-z0-9_]*$" },
		fix_template = { type = "string", minLength = 10, maxLength = 300 },
	},
}

local function few(latest: results.Results): ({ report.Failure }, number)
	local shown = {}
	for index = 1, math.min(SHOWN, #latest.failures) do
		table.insert(shown, latest.failures[index])
	end
	return shown, #latest.failures - #shown
end

--- Returns what this session has tried, for the next analysis.
local function history(self: state.Session): { string }
	local lines = {}
	for _, execution in self.doc.executions do
		local fix = execution.fix_applied
		if execution.analysis ~= nil and fix ~= nil then
			table.insert(
				lines,
				`Cause: {execution.analysis.root_cause} Strategy: {execution.analysis.fix_strategy} It did not help: {fix.description}`
			)
		end
	end
	return lines
end

--- Has the model work with tools; returns how it ended, a detail and the reply.
local function ask(self: state.Session, what: string, writing: boolean, request: llm.Chat): (string, string, llm.Reply?)
	local used: tools.Usage = { calls = 0, written = 0, input = 0, output = 0, cached = 0, cost = 0 }
	local offered, rejected = tools.offer({
		tree = self.tree,
		params = self.limits,
		writing = writing,
		validates = { self.params.test },
		on_progress = function(now: string)
			ui.status(`{what}: {now}`)
		end,
		used = used,
		on_call = function() end,
	})
	request.model, request.label, request.tools, request.rejected = self.model, what, offered, rejected
	local status, detail, reply = tool_loop.run(self.limits, request, used)
	ui.status("")
	self.tokens += used.input + used.output
	self.tools += used.calls
	self.cost = if self.cost and used.cost then self.cost + used.cost else nil
	return status, detail, reply
end

--- Finds the root cause of what the last run shows. Returns the value, or nil and why there is none.
function models.analyse(self: state.Session, latest: results.Results): (Analysis?, string)
	local failures, more = few(latest)
	local prompt = template.render("./prompts/analyse.md", {
		goal = self.params.goal or "",
		layout = self.layout,
		command = self.params.test,
		failures = failures,
		more = more,
		passed = latest.passed,
		failed = latest.failed,
		skipped = latest.skipped,
		history = history(self),
		memory = recall.for_model(self.past, self.known),
		max_tools = self.params.max_tools,
	})
	local status, detail, reply = ask(self, "analysing", false, {
		prompt = prompt,
		schema = ANALYSIS,
		check = function(value: Analysis): string?
			local literal = string.gsub(value.location.file, "[%[%]%*%?{}]", "[%0]")
			if #self.tree:find(literal).paths ~= 1 then
				return `location.file must name one file of the repository, and {value.location.file} does not`
			end
			for _, execution in self.doc.executions do
				if execution.analysis ~= nil and judge.same(execution.analysis.fix_strategy, value.fix_strategy) then
					return "that strategy was tried already and did not help; find out why, and propose another"
				end
			end
			return nil
		end,
	})
	if reply == nil or reply.value == nil then
		return nil, if status == "completed" then "no valid analysis" else detail
	end
	return reply.value, ""
end

--- Mends what the analysis says. Returns whether the model came to its end, and what it said.
function models.fix(self: state.Session, latest: results.Results, analysis: Analysis): (boolean, string)
	local failures = few(latest)
	local prompt = template.render("./prompts/fix.md", {
		goal = self.params.goal or "",
		layout = self.layout,
		failures = failures,
		analysis = { root_cause = analysis.root_cause, fix_strategy = analysis.fix_strategy },
		regression_test = self.params.kind ~= "refactor" and (latest.verdict ~= "failed" or self.params.goal ~= nil),
		protected = self.protected,
		commands = programs.describe_allowed(self.limits) or "",
		max_tools = self.params.max_tools,
	})
	local status, detail = ask(self, "mending", true, { prompt = prompt })
	return status == "completed", if status == "completed" then detail else `ended by {status}: {detail}`
end

return models
