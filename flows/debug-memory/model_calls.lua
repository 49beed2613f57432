--!strict
--- The two calls of models in a session: an analysis, with tools that only read, and a fix.

local llm = require("@nietz/llm")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local run_comparison = require("./run_comparison")
local spec = require("../common/memory/spec")
local state = require("./state")
local template = require("@nietz/template")
local tool_loop = require("../common/tool_loop")
local tools = require("../common/tools")
local ui = require("@nietz/ui")

local model_calls = {}

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
local MAX_FAILURES = 8

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

local function first_failures(latest: results.Results): ({ report.Failure }, number)
	local shown = {}
	for index = 1, math.min(MAX_FAILURES, #latest.failures) do
		table.insert(shown, latest.failures[index])
	end
	return shown, #latest.failures - #shown
end

--- Returns what this session has tried, and whether it helped, for the next analysis.
local function tried_strategies(self: state.Session): { string }
	local lines = {}
	for _, execution in self.doc.executions do
		local fix = execution.fix_applied
		if execution.analysis ~= nil and fix ~= nil then
			local came = if fix.verification == "passed" then "It helped" else "It did not help"
			table.insert(
				lines,
				`Cause: {execution.analysis.root_cause} Strategy: {execution.analysis.fix_strategy} {came}: {fix.description}`
			)
		end
	end
	return lines
end

--- Lets the model work with tools; returns how it ended, a detail and the reply.
local function run_model(self: state.Session, what: string, writing: boolean, request: llm.Chat): (string, string, llm.Reply?)
	local used: tools.Usage = { calls = 0, written = 0, input = 0, output = 0, cached = 0, cost = 0 }
	local offered, rejected = tools.offer({
		tree = self.tree,
		workplace = self.workplace,
		builds = {},
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
	self.tool_calls += used.calls
	self.cost = if self.cost and used.cost then self.cost + used.cost else nil
	return status, detail, reply
end

--- Asks for the root cause of what the last run shows. Returns the analysis, or nil and why there is none.
function model_calls.analyse(self: state.Session, latest: results.Results): (Analysis?, string)
	local failures, more = first_failures(latest)
	local prompt = template.render("./prompts/analyse.md", {
		goal = self.params.goal or "",
		layout = self.repo_listing,
		command = self.params.test,
		failures = failures,
		more = more,
		passed = latest.passed,
		failed = latest.failed,
		skipped = latest.skipped,
		history = tried_strategies(self),
		memory = recall.for_model(self.similar_past, self.known_patterns),
		max_tools = self.params.max_tools,
	})
	local status, detail, reply = run_model(self, "analysing", false, {
		prompt = prompt,
		schema = ANALYSIS,
		check = function(value: Analysis): string?
			local literal = string.gsub(value.location.file, "[%[%]%*%?{}]", "[%0]")
			if #self.tree:find(literal).paths ~= 1 then
				return `location.file must name one file of the repository, and {value.location.file} does not`
			end
			for _, execution in self.doc.executions do
				local fix = execution.fix_applied
				local failed = execution.analysis ~= nil and fix ~= nil and fix.verification == "failed"
				if failed and run_comparison.is_same_text(execution.analysis.fix_strategy, value.fix_strategy) then
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

--- Asks for the fix that an analysis proposes. Returns whether the model came to its end, and what it said.
function model_calls.fix(self: state.Session, latest: results.Results, analysis: Analysis): (boolean, string)
	local failures = first_failures(latest)
	local prompt = template.render("./prompts/fix.md", {
		goal = self.params.goal or "",
		layout = self.repo_listing,
		failures = failures,
		analysis = { root_cause = analysis.root_cause, fix_strategy = analysis.fix_strategy },
		regression_test = self.params.kind ~= "refactor" and (latest.verdict ~= "failed" or self.params.goal ~= nil),
		protected = self.protected_globs,
		commands = programs.describe_allowed(self.limits) or "",
		max_tools = self.params.max_tools,
	})
	local status, detail = run_model(self, "mending", true, { prompt = prompt })
	return status == "completed", if status == "completed" then detail else `ended by {status}: {detail}`
end

return model_calls
