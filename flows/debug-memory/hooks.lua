--!strict
--- The hooks of the specification's schema: what is done at each of its moments, by the names that it gives.

local documents = require("@nietz/documents")
local json = require("@nietz/json")
local recall = require("../common/memory/recall")
local show = require("./show")
local spec = require("../common/memory/spec")
local state = require("./state")
local ui = require("@nietz/ui")

local hooks = {}

--- The longest code that is kept in a memory file.
local MAX_SNAPSHOT = 65536

--- Records how often each pattern was used in this session, and how often it worked.
local function count_patterns(self: state.Session)
	local order, counted = {}, {} :: { [string]: documents.Document }
	for index, pattern in self.fix_patterns do
		local fix = self.doc.executions[index].fix_applied
		if fix ~= nil and fix.verification ~= "pending" then
			local row = counted[pattern.name]
			if row == nil then
				row = { pattern = pattern.name, category = pattern.category, fix_template = pattern.template, frequency = 0, worked = 0 }
				counted[pattern.name] = row
				table.insert(order, pattern.name)
			end
			row.frequency += 1
			row.worked += if fix.verification == "passed" then 1 else 0
		end
	end
	table.sort(order)
	local rows = {}
	for _, name in order do
		local row = counted[name]
		row.effectiveness = row.worked / row.frequency
		row.worked = nil
		table.insert(rows, row)
	end
	self.doc.learnings = self.doc.learnings or {}
	self.doc.learnings.patterns_identified = if #rows > 0 then rows else nil
end

--- Records the tests that failed more than once, and whether they pass now.
local function note_recurring(self: state.Session)
	local last = self.results[#self.results]
	local failing = {}
	if last then
		for _, failure in last.failures do
			failing[failure.test_name] = true
		end
	end
	local names, times = {}, {} :: { [string]: number }
	for _, execution in self.doc.executions do
		for _, failure in execution.failures or {} do
			if times[failure.test_name] == nil then
				table.insert(names, failure.test_name)
			end
			times[failure.test_name] = (times[failure.test_name] or 0) + 1
		end
	end
	local rows = {}
	for _, name in names do
		if times[name] > 1 then
			local open = if self.doc.status == "escalated" then "escalated" else "pending"
			table.insert(rows, { test = name, occurrences = times[name], resolution = if failing[name] then open else "resolved" })
		end
	end
	self.doc.learnings = self.doc.learnings or {}
	self.doc.learnings.recurring_failures = if #rows > 0 then rows else nil
end

local ACTIONS = {
	check_similar_past_issues = function(self)
		self.similar_past = if self.params.memory
			then recall.find_similar(self.results[#self.results].failures, self.doc.session_id)
			else {}
		for _, past in self.similar_past do
			ui.say(`• {past.date}: a like {past.error_type} in {past.file}, {if past.worked then "mended" else "not mended"} then`)
		end
	end,
	apply_known_fix_template = function(self)
		self.known_patterns = if self.params.memory then recall.offered_patterns(self.results[#self.results].failures) else {}
	end,
	update_fix_effectiveness = count_patterns,
	extract_learnings = note_recurring,
	notify_human = function(self)
		show.escalation(self.doc)
	end,
	preserve_full_context = function(self)
		count_patterns(self)
		note_recurring(self)
		local ok, code = pcall(self.tree.read, self.tree, self.doc.file_path)
		local last = self.doc.executions[#self.doc.executions]
		if ok and last ~= nil then
			last.code_snapshot = string.sub(code, 1, MAX_SNAPSHOT)
		end
	end,
} :: { [string]: (self: state.Session) -> () }

for moment, names in spec.hooks do
	for _, name in names do
		assert(ACTIONS[name] ~= nil, `the schema's hook {moment} asks for {name}, which is not known`)
	end
end

--- Does what the schema asks for at a moment: `on_failure`, `on_success` or `on_escalation`.
function hooks.run(self: state.Session, moment: string)
	for _, name in spec.hooks[moment] or {} :: { string } do
		ACTIONS[name](self)
	end
end

--- Public, because patterns are counted at every end of a session, and not only by a hook.
hooks.count_patterns = count_patterns

--- Returns the similar failures of earlier sessions, as an analysis has them in the schema.
function hooks.similar_issues(self: state.Session): { documents.Document }?
	local rows = json.array({})
	for _, past in self.similar_past do
		table.insert(rows, { session_id = past.session_id, file = past.file, resolution = past.fix_strategy })
	end
	return if #rows > 0 then rows else nil
end

return hooks
