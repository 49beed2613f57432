--!strict
--- The two calls of models in a session: an analysis, which looks and changes nothing, and a fix.

local documents = require("@nietz/documents")
local excerpts = require("./excerpts")
local judged_past = require("./judged_past")
local list = require("../common/list")
local llm = require("@nietz/llm")
local mind = require("../common/mind")
local programs = require("../common/programs")
local recall = require("../common/memory/recall")
local results = require("../common/memory/results")
local run_comparison = require("./run_comparison")
local small = require("./small")
local source = require("../common/tools/source")
local spec = require("../common/memory/spec")
local state = require("./state")
local template = require("@nietz/template")
local tool_loop = require("../common/tool_loop")
local tools = require("../common/tools")
local ui = require("@nietz/ui")

local model_calls = {}

--- Something that is wrong besides the cause; `location` is `path:line`.
export type Seen = { issue: string, location: string, severity: string, security: boolean? }

export type Analysis = {
	root_cause: string,
	root_cause_category: string,
	location: { file: string, line: number? },
	fix_strategy: string,
	confidence: number,
	related_failures: { string }?,
	pattern: string,
	fix_template: string,
	--- The known pattern whose template the strategy follows.
	applied: string?,
	--- Which past observations had a like cause; nil where that was not judged.
	alike: { judged_past.Verdict }?,
	--- What would keep such mistakes out.
	prevention: string?,
	--- How bad it is that the cause lets somebody do what they must not; nil where it does not.
	security: string?,
	--- What was seen besides the cause.
	issues: { Seen }?,
}

--- How many skipped tests a model is told.
local MAX_SKIPPED = 10

--- What is said of a strategy, by what was recorded of its fix. One that changed nothing is pending for good.
local CAME = { passed = "It helped", failed = "It did not help", pending = "It was not carried out" } :: { [string]: string }

--- How bad an issue is, by the specification.
local SEVERITIES = { "critical", "major", "minor" }

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
		prevention = { type = "string", minLength = 10, maxLength = 300 },
		security = { enum = SEVERITIES },
		issues = {
			type = "array",
			maxItems = 10,
			items = {
				type = "object",
				required = { "issue", "location", "severity" },
				properties = {
					issue = { type = "string", minLength = 5, maxLength = 300 },
					location = { type = "string", minLength = 1, maxLength = 300 },
					severity = { enum = SEVERITIES },
					security = { type = "boolean" },
				},
			},
		},
	},
}

--- Returns the schema of an analysis. It asks for what was offered, and for nothing else.
local function analysis_schema(pasts: boolean, known: boolean, for_small: boolean): llm.Schema
	local schema = table.clone(ANALYSIS)
	schema.properties = table.clone(ANALYSIS.properties)
	if for_small then
		for _, name in small.LEFT_OUT do
			schema.properties[name] = nil
		end
	end
	schema.properties.applied = if known then { type = "string", maxLength = 60 } else nil
	schema.properties.alike = if pasts then judged_past.SCHEMA else nil
	return schema :: any
end

--- Returns the names of the tests that were skipped, the first ones.
local function skipped_names(latest: results.Results): { string }
	local skipped = list.filter(latest.tests, function(test)
		return test.outcome == "skipped"
	end)
	local names = {}
	for index = 1, math.min(MAX_SKIPPED, #skipped) do
		names[index] = skipped[index].name
	end
	return names
end

--- Returns a text that ends as a sentence does, so that another can follow it.
local function sentence(value: string): string
	return if string.find(value, "[%.!%?]$") ~= nil then value else value .. "."
end

--- Whether a strategy was carried out and did not help.
local function did_not_help(execution: documents.Document): boolean
	return execution.analysis ~= nil and execution.fix_applied ~= nil and execution.fix_applied.verification == "failed"
end

--- Returns the issues that are no failure once more: those are what the session is for, and nothing that was seen besides.
local function besides(latest: results.Results, issues: { Seen }?): { Seen }?
	return if issues == nil
		then nil
		else list.filter(issues, function(issue)
			return not list.some(latest.failures, function(failure)
				local told = { failure.error_message, `{failure.error_type}: {failure.error_message}` }
				return list.some(told, function(text)
					return run_comparison.is_same_text(text, issue.issue)
				end)
			end)
		end)
end

--- Returns what this session has tried, and whether it helped, for the next analysis.
local function tried_strategies(self: state.Session): { string }
	local lines = {}
	for _, execution in self.doc.executions do
		local fix = execution.fix_applied
		if execution.analysis ~= nil and fix ~= nil then
			local came = CAME[fix.verification or "pending"]
			local cause, strategy = sentence(execution.analysis.root_cause), sentence(execution.analysis.fix_strategy)
			local what = string.gsub(fix.description, "%s*\n%s*", " ")
			table.insert(lines, `Cause: {cause} Strategy: {strategy} {came}: {what}`)
		end
	end
	return lines
end

--- Lets the model work, with tools that look, or that write as well, or with none; returns how it ended, a detail and the reply.
--- The files that it reads are noted.
local function run_model(
	self: state.Session,
	what: string,
	work: "look" | "write" | "answer",
	request: llm.Chat
): (string, string, llm.Reply?)
	local used = tools.usage()
	local read: { string } = {}
	local offered, rejected = tools.offer({
		tree = self.tree,
		workplace = self.workplace,
		builds = {},
		params = self.limits,
		writing = work == "write",
		running = true,
		validates = { self.params.test },
		on_progress = function(now: string)
			ui.status(`{what}: {now}`)
		end,
		used = used,
		on_call = function(_, name: string, input)
			local paths = if name == "read_file" then { input.path } elseif name == "read_files" then input.paths else nil
			for _, path in paths or {} do
				if type(path) == "string" and table.find(read, path) == nil then
					table.insert(read, path)
				end
			end
		end,
	})
	request.model, request.label = self.model, what
	if work ~= "answer" then
		request.tools, request.rejected = offered, rejected
	end
	local status, detail, reply = tool_loop.run(self.limits, request, used)
	if used.ended_by == "seconds" then
		-- Whatever its time is used up by, a model that is late is late.
		status = "timeout"
	end
	ui.status("")
	self.read_paths = read
	self.tokens += used.input + used.output
	self.tool_calls += used.calls
	self.cost = if self.cost and used.cost then self.cost + used.cost else nil
	return status, detail, reply
end

--- Asks for the root cause of what the last run shows. Returns the analysis; or nil, why there is none, and how that ended.
function model_calls.analyse(self: state.Session, latest: results.Results): (Analysis?, string, string)
	local failures, more = excerpts.failures(latest.failures)
	local memory, told = recall.for_judge(self.candidates, self.known_patterns)
	local code = if mind.of(self.model) == "small" then small.code(self.tree, latest) else {}
	local prompt = template.render("./prompts/analyse.md", {
		goal = self.params.goal or "",
		layout = self.repo_listing,
		code = code,
		command = self.params.test,
		failures = failures,
		more = more,
		passed = latest.passed,
		failed = latest.failed,
		skipped = latest.skipped,
		skipped_names = skipped_names(latest),
		set_aside = self.set_aside,
		history = tried_strategies(self),
		fruitless = list.some(self.doc.executions, did_not_help),
		memory = memory,
		pasts = judged_past.names(told),
		known = #self.known_patterns > 0,
		known_name = if #self.known_patterns > 0 then " Take the name of a known pattern if it is that one." else "",
		commands = programs.describe_allowed(self.limits) or "",
		max_tools = self.params.max_tools,
	})
	local status, detail, reply = run_model(self, "analysing", if #code > 0 then "answer" else "look", {
		prompt = prompt,
		schema = analysis_schema(judged_past.names(told) ~= "", #self.known_patterns > 0, #code > 0),
		check = function(value: Analysis): string?
			if #self.tree:find(source.literal_glob(value.location.file)).paths ~= 1 then
				return `location.file must name one file of the repository, and {value.location.file} does not`
			end
			if value.root_cause == value.root_cause_category then
				return `root_cause must say why it fails, and {value.root_cause} only names its kind`
			end
			local function is_applied(known: recall.Pattern): boolean
				return known.pattern == value.applied
			end
			if value.applied ~= nil and not list.some(self.known_patterns, is_applied) then
				return `applied must be the name of one of the known patterns above, or be left out: {value.applied} is none`
			end
			local odd = judged_past.check(self, value.alike, told)
			if odd ~= nil then
				return odd
			end
			for _, execution in self.doc.executions do
				if did_not_help(execution) and run_comparison.is_same_text(execution.analysis.fix_strategy, value.fix_strategy) then
					return "that strategy was tried already and did not help; find out why, and propose another"
				end
			end
			return nil
		end,
	})
	-- What single tests have left behind is no part of the fix.
	self.tree:restore()
	if reply == nil or reply.value == nil then
		return nil, if status == "completed" then "no valid analysis" else detail, status
	end
	judged_past.settle(self, reply.value.alike, told)
	reply.value.issues = besides(latest, reply.value.issues)
	return reply.value, "", status
end

--- Returns the lines around the place that an analysis names.
local function lines_around(self: state.Session, analysis: Analysis): { string }
	local ok, content = pcall(self.tree.read, self.tree, analysis.location.file)
	return if ok then excerpts.around(content, analysis.location.line) else {}
end

--- Asks a small mind for a fix as places and what is to stand there, and makes it. Returns the same as `model_calls.fix`.
local function written_fix(self: state.Session, prompt: string): (string, string)
	local status, detail, reply = run_model(self, "mending", "answer", {
		prompt = prompt,
		schema = small.CHANGE,
		check = function(value: { edits: { small.Edit } }): string?
			return small.why_not(self.tree, value.edits)
		end,
	})
	if reply == nil or reply.value == nil then
		return status, if status == "completed" then "no valid change" else `ended by {status}: {detail}`
	end
	local edits: { small.Edit } = reply.value.edits
	small.make(self.tree, edits)
	local paths = list.map(edits, function(edit)
		return edit.path
	end)
	return status, `Changed {table.concat(paths, ", ")}`
end

--- Asks for the fix that an analysis proposes. Returns how the model came to its end (`completed`, `timeout` …), and what it said.
function model_calls.fix(self: state.Session, latest: results.Results, analysis: Analysis): (string, string)
	local related = run_comparison.targets(latest, analysis.related_failures)
	local failures = excerpts.failures(list.filter(latest.failures, function(failure)
		return table.find(related, failure.test_name) ~= nil
	end))
	local needs_test = self.params.kind ~= "refactor" and (latest.verdict ~= "failed" or self.params.goal ~= nil)
	local shown = if mind.of(self.model) == "small" then small.code(self.tree, latest) else {}
	local prompt = template.render("./prompts/fix.md", {
		shown = shown,
		goal = self.params.goal or "",
		layout = self.repo_listing,
		failures = failures,
		others = #latest.failures - #related,
		analysis = { root_cause = analysis.root_cause, fix_strategy = analysis.fix_strategy },
		memory = recall.for_model(self.similar_past, {}),
		place = analysis.location.file,
		code = lines_around(self, analysis),
		read = self.read_paths,
		regression_test = if needs_test then " Add or extend a test that fails without your change." else "",
		protected = self.guards.globs,
		commands = programs.describe_allowed(self.limits) or "",
		max_tools = self.params.max_tools,
	})
	if #shown > 0 then
		return written_fix(self, prompt)
	end
	local status, detail = run_model(self, "mending", "write", { prompt = prompt })
	return status, if status == "completed" then detail else `ended by {status}: {detail}`
end

return model_calls
