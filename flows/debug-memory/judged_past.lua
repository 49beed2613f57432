--!strict
--- Which failures of the past have a cause like the one of now. The rules choose candidates widely, because an output does not
--- tell its cause; the analysis, which reads the code, says which of them are like. Only those are shown, recorded, and told to
--- the model that mends.

local json = require("@nietz/json")
local list = require("../common/list")
local recall = require("../common/memory/recall")
local state = require("./state")
local ui = require("@nietz/ui")

local judged_past = {}

--- What an analysis says of a candidate: its name in the prompt, and what is the same in both causes.
export type Verdict = { past: string, reason: string }

--- What an analysis answers, as a schema.
judged_past.SCHEMA = {
	type = "array",
	maxItems = recall.MAX_CANDIDATES,
	items = {
		type = "object",
		required = { "past", "reason" },
		properties = {
			past = { type = "string", minLength = 2, maxLength = 4 },
			reason = { type = "string", minLength = 10, maxLength = 300 },
		},
	},
}

--- Looks for candidates for what the last run shows.
function judged_past.look(self: state.Session)
	local failures = self.results[#self.results].failures
	self.candidates = if self.params.memory then recall.find_candidates(failures, self.doc.session_id) else {}
	self.similar_past = {}
end

--- Returns the candidates by the names that a prompt gives them, for a prompt that tells so many: `P1 to P3`.
function judged_past.names(told: number): string
	return if told == 0 then "" elseif told == 1 then "P1" else `P1 to P{told}`
end

--- Returns the candidate of this name among those that the prompt tells, or nil.
local function named(self: state.Session, name: string, told: number): recall.Past?
	local number = tonumber(string.match(name, "^P(%d+)$"))
	return if number ~= nil and number <= told then self.candidates[number] else nil
end

--- Returns what is wrong with an analysis' verdicts, or nil.
function judged_past.check(self: state.Session, verdicts: { Verdict }?, told: number): string?
	for _, verdict in verdicts or {} :: { Verdict } do
		if named(self, verdict.past, told) == nil then
			local those = if told == 0 then "there are none" else `those are {judged_past.names(told)}`
			return `alike names past observations above, and {verdict.past} is none of them: {those}`
		end
	end
	return nil
end

--- Keeps those candidates that an analysis says are like, and says them. Where it says nothing, those stay of which the rules
--- are sure.
function judged_past.settle(self: state.Session, verdicts: { Verdict }?, told: number)
	if told == 0 then
		return
	end
	local alike = json.array({})
	if verdicts == nil then
		self.similar_past = list.filter(self.candidates, function(past): boolean
			return past.sure == true
		end)
	end
	for _, verdict in verdicts or {} :: { Verdict } do
		local past = named(self, verdict.past, told)
		if past ~= nil and table.find(self.similar_past, past) == nil then
			past.reason = verdict.reason
			table.insert(self.similar_past, past)
			table.insert(alike, { session_id = past.session_id, reason = verdict.reason })
		end
	end
	if verdicts ~= nil then
		local own = state.own(self)
		own.judged_past = own.judged_past or {}
		table.insert(own.judged_past, { attempt = #self.doc.executions, candidates = told, alike = alike })
	end
	for _, past in self.similar_past do
		local how = if past.worked == nil then "not tried" elseif past.worked then "mended" else "not mended"
		ui.say(`• {past.date}: a like {past.error_type} in {past.file}, {how} then` .. (if past.reason then `: {past.reason}` else ""))
	end
end

--- Returns how many sessions of the past had a like cause, over all attempts.
function judged_past.count(self: state.Session): number
	local seen, count = {} :: { [string]: boolean }, 0
	for _, execution in self.doc.executions do
		local analysis = execution.analysis
		local issues: { any } = if analysis ~= nil and analysis.similar_past_issues ~= nil then analysis.similar_past_issues else {}
		for _, past in issues do
			count += if seen[past.session_id] then 0 else 1
			seen[past.session_id] = true
		end
	end
	return count
end

return judged_past
