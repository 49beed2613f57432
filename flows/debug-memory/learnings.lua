--!strict
--- What a session has learnt, as the memory file keeps it: patterns and how often their fixes worked, failures that came again,
--- what else is wrong in the code, and what would prevent such mistakes.

local documents = require("@nietz/documents")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local list = require("../common/list")
local set_aside = require("./set_aside")
local state = require("./state")

local learnings = {}

local function keep(self: state.Session, name: string, rows: { any })
	self.doc.learnings = self.doc.learnings or {}
	self.doc.learnings[name] = if #rows > 0 then rows else nil
end

--- Records how often each pattern was used in this session, and how often it worked.
function learnings.count_patterns(self: state.Session)
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
	keep(self, "patterns_identified", rows)
end

--- A test that failed, and the attempts at which it did.
type Seen = { test: string, attempts: { string } }

local function failures_seen(self: state.Session): { Seen }
	local order: { Seen }, by_name = {}, {} :: { [string]: Seen }
	for _, execution in self.doc.executions do
		for _, failure in execution.failures or {} do
			local seen = by_name[failure.test_name]
			if seen == nil then
				seen = { test = failure.test_name, attempts = {} }
				by_name[failure.test_name] = seen
				table.insert(order, seen)
			end
			table.insert(seen.attempts, tostring(execution.attempt))
		end
	end
	return order
end

--- Records the tests that failed more than once or are left as they are, how that ended, and what is to be known about it.
function learnings.note_recurring(self: state.Session)
	local last = self.results[#self.results]
	local rows = {}
	for _, seen in failures_seen(self) do
		local left = set_aside.find(self, seen.test)
		if left == nil and #seen.attempts == 1 then
			continue
		end
		local failing = last ~= nil and list.some(last.failures, function(failure)
			return failure.test_name == seen.test
		end)
		local resolution = "resolved"
		if left ~= nil then
			resolution = left.resolution
		elseif failing then
			resolution = if self.doc.status == "escalated" then "escalated" else "pending"
		end
		local note = `failed in attempt{if #seen.attempts == 1 then "" else "s"} {table.concat(seen.attempts, ", ")}`
		table.insert(rows, {
			test = seen.test,
			occurrences = #seen.attempts,
			resolution = resolution,
			notes = if left then `{note}; {left.note}` else note,
		})
	end
	keep(self, "recurring_failures", rows)
end

--- Whether what was changed from one commit to another touches a place such as `src/a.py:12`; a place without a line is touched
--- with its file.
local function is_touched(from: string, to: string, location: string): boolean
	local path, line = string.match(location, "^(.-):(%d+)")
	local row = tonumber(line)
	local seen, page = leftovers.try(function()
		return git.hunks({ from = from, to = to, path = path or location })
	end)
	for _, file in if seen then page.files else {} do
		for _, hunk in file.hunks do
			if row == nil or row >= hunk.old_start and row < hunk.old_start + math.max(1, hunk.old_count) then
				return true
			end
		end
	end
	return false
end

--- Records what analyses saw besides causes, and whether what the session has kept touches it.
function learnings.note_issues(self: state.Session)
	local kept = table.find(self.commits, self.kept_commit) or 1
	local rows, known = {}, {} :: { [string]: boolean }
	for _, found in self.issues do
		local key = `{found.location} {found.issue}`
		if not known[key] then
			known[key] = true
			table.insert(rows, {
				issue = found.issue,
				location = found.location,
				severity = found.severity,
				-- Of a later commit than the one that is kept, nothing is known to be in it.
				addressed = found.attempt < kept and is_touched(self.commits[found.attempt], self.kept_commit, found.location),
			})
		end
	end
	keep(self, "code_quality_issues", rows)
end

--- Records what analyses recommend.
function learnings.recommend(self: state.Session)
	keep(self, "recommendations", self.recommendations)
end

return learnings
