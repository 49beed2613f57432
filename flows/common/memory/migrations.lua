--!strict
--- Brings sessions that were written before our key had a version up to it: each fix is judged anew from what was recorded of
--- the runs around it, because a fix that took a test away, or mended one bug of two, was recorded as the wrong thing then; and
--- how a session ended leaves the recommendations, where it stood.

local json = require("@nietz/json")
local list = require("../list")
local verdicts = require("./verdicts")

local migrations = {}

--- The version of our key.
migrations.VERSION = 1

--- A field that every session of ours has had from the beginning. A file without it is another program's, and is left as it is.
migrations.FORMERLY = { "/metadata/task_id" }

--- Whether this program wrote a session: the agent is `provider/model`, and the code's hash is a SHA-256.
local function is_ours(doc: any): boolean
	local agent = (doc.metadata or {}).agent
	local first = doc.executions[1]
	return type(agent) == "string"
		and string.find(agent, "^[%w_%-]+/.") ~= nil
		and (first == nil or string.find(first.code_hash, "^%x+$") ~= nil and #first.code_hash == 64)
end

--- Judges each fix anew; returns those that were recorded as something else.
local function judge_fixes(doc: any): { any }
	local changed = {}
	for index, execution in doc.executions do
		local fix, following = execution.fix_applied, doc.executions[index + 1]
		if fix ~= nil and following ~= nil then
			local verdict = verdicts.judge(verdicts.run_of(execution), verdicts.run_of(following))
			local was, is = fix.verification or "pending", if verdict.helped then "passed" else "failed"
			if was ~= is then
				fix.verification = is
				fix.description = `{fix.description}\n\n[{verdict.why}]`
				table.insert(changed, { attempt = execution.attempt, was = was, is = is, why = verdict.why })
			end
		end
	end
	return changed
end

--- Counts anew how often each pattern helped: by the fixes of its category, because a fix did not name its pattern then.
local function count_patterns(doc: any)
	local patterns = (doc.learnings or {}).patterns_identified or {}
	local fixes = list.filter(doc.executions, function(execution): boolean
		return execution.fix_applied ~= nil and (execution.fix_applied.verification or "pending") ~= "pending"
	end)
	for _, pattern in patterns do
		local own = list.filter(fixes, function(execution): boolean
			return execution.analysis ~= nil and execution.analysis.root_cause_category == pattern.category
		end)
		local judged = if #own > 0 then own else fixes
		local helped = list.filter(judged, function(execution): boolean
			return execution.fix_applied.verification == "passed"
		end)
		if #judged > 0 then
			pattern.effectiveness = #helped / #judged
		end
	end
end

--- What begins the reason of an ending that has a trigger.
local TRIGGERS = {
	"max_attempts_reached",
	"stuck",
	"regression_detected",
	"coverage_threshold_unmet",
	"unverified",
	"nothing_executed",
	"no_analysis",
	"left_behind",
}

--- Takes the line on how the session ended out of its recommendations, where it stood for want of another place, and puts it
--- where such lines stand.
local function move_ending(doc: any)
	local learnings = doc.learnings
	local lines: { string } = if learnings ~= nil and learnings.recommendations ~= nil then learnings.recommendations else {}
	local kept: { string } = {}
	for _, line in lines do
		local status, reason = string.match(line, "^(%l+): (.+)$")
		if status == nil or status ~= doc.status or doc.nietz.ended ~= nil then
			table.insert(kept, line)
			continue
		end
		local trigger = string.match(reason :: string, "^([%l_]+): ")
		doc.nietz.ended = { trigger = if trigger ~= nil and table.find(TRIGGERS, trigger) ~= nil then trigger else nil, reason = reason }
	end
	if #kept < #lines then
		learnings.recommendations = if #kept > 0 then kept else nil
	end
end

--- Returns a session with our key, judged anew if this program wrote it.
function migrations.own_key(doc: any): any
	doc.nietz = doc.nietz or {}
	doc.nietz.version = migrations.VERSION
	if is_ours(doc) then
		doc.nietz.source = doc.nietz.source or "debug-memory"
		local changed = judge_fixes(doc)
		if #changed > 0 then
			doc.nietz.judged_anew = json.array(changed)
			count_patterns(doc)
		end
		move_ending(doc)
	end
	return doc
end

--- What the collection's `version.migrations` wants.
migrations.all = { [""] = migrations.own_key } :: { [string]: (doc: any) -> any }

return migrations
