--!strict
--- Patterns of mistakes over all sessions: how often each was met, how often its fix helped, and which fit a failure. Queries,
--- statistics and what models are told take their figures from here.

local clock = require("@nietz/clock")
local mistakes = require("./mistakes")
local past = require("./past")
local rank = require("./rank")
local report = require("./parsers/report")
local spec = require("./spec")
local store = require("./store")
local words = require("./words")

local patterns = {}

export type Pattern = {
	pattern: string,
	category: string,
	--- What to do, in general words; the newest.
	template: string,
	--- How often it was used, and how often it helped then: counted, not claimed.
	uses: number,
	successes: number,
	rate: number,
	confidence: number,
	last: string,
	rank: number,
	--- Why it is not offered any more.
	pruned: string?,
	--- The sessions that met it.
	sessions: { [string]: boolean },
	--- The kinds of errors of those sessions.
	error_types: { [string]: boolean },
}

--- A pattern is offered from the first rate on; below the second one it is given up, after so many uses.
local OFFERED_RATE, GIVEN_UP_RATE, MIN_USES = 0.6, 0.5, 3
--- The most that are offered, and the share of a failure's words that a pattern has to have where nothing else connects the two.
local MAX_OFFERED, MIN_SHARE = 5, 0.25
--- A pattern by which less than this share of fixes held is not the answer to `get_fix_templates`: the schema's own figure.
patterns.TEMPLATE_RATE = tonumber(string.match(spec.queries.get_fix_templates, "effectiveness > ([%d%.]+)")) or 0.7

--- Counts all patterns, archived ones too, by name: rows of sessions, the newest last.
local function rows(): { any }
	local each = {}
	for _, prefix in { "debug", "archived" } do
		table.insert(
			each,
			(
				string.gsub(
					[[SELECT p.pattern, p.category, p.frequency, p.effectiveness, p.fix_template, p.document, s.session_id,
			coalesce(s.updated_at, s.created_at, '') AS day,
			(SELECT avg(e.confidence) FROM X_executions e WHERE e.document = p.document) AS confidence,
			(SELECT json_group_array(DISTINCT f.error_type) FROM X_failures f WHERE f.document = p.document) AS error_types
			FROM X_patterns p JOIN X_memory s ON s.document = p.document]],
					"X_",
					prefix .. "_"
				)
			)
		)
	end
	return store.query(`SELECT * FROM ({table.concat(each, " UNION ALL ")}) ORDER BY day, session_id, pattern`, {}, true) :: any
end

--- What is added up of a pattern: how often its fix was judged, and what it was told to be.
type Sum = { pattern: Pattern, judged: number, confidences: number, told: number, categories: { [string]: number } }

local function new_sum(name: string): Sum
	local pattern: Pattern = {
		pattern = name,
		category = "other",
		template = "",
		uses = 0,
		successes = 0,
		rate = 0,
		confidence = 1,
		last = "",
		rank = 0,
		pruned = nil,
		sessions = {},
		error_types = {},
	}
	return { pattern = pattern, judged = 0, confidences = 0, told = 0, categories = {} }
end

--- Returns the patterns of all sessions, archived ones too, the best first.
function patterns.all(): { Pattern }
	local sums: { [string]: Sum } = {}
	for _, row in rows() do
		local sum: Sum = sums[row.pattern] or new_sum(row.pattern)
		sums[row.pattern] = sum
		local pattern = sum.pattern
		pattern.uses += row.frequency
		if row.effectiveness ~= nil then
			sum.judged += row.frequency
			pattern.successes += row.frequency * row.effectiveness
		end
		if row.confidence ~= nil then
			sum.confidences += row.confidence
			sum.told += 1
		end
		if row.category ~= nil then
			local count = (sum.categories[row.category] or 0) + row.frequency
			sum.categories[row.category] = count
			if count >= (sum.categories[pattern.category] or 0) then
				pattern.category = row.category
			end
		end
		pattern.template = row.fix_template or pattern.template
		pattern.last = if row.day > pattern.last then row.day else pattern.last
		pattern.sessions[row.session_id] = true
		for kind in string.gmatch(row.error_types or "", "%a+") do
			pattern.error_types[kind] = true
		end
	end
	local old = clock.format(clock.unix() - past.DAYS_BACK * 86400)
	local all: { Pattern } = {}
	for _, sum in sums do
		local pattern = sum.pattern
		pattern.rate = if sum.judged > 0 then pattern.successes / sum.judged else 0
		pattern.confidence = if sum.told > 0 then sum.confidences / sum.told else 1
		if sum.judged >= MIN_USES and pattern.rate < GIVEN_UP_RATE then
			pattern.pruned = "it seldom helps"
		elseif pattern.last ~= "" and pattern.last < old then
			pattern.pruned = `not seen for {past.DAYS_BACK} days`
		end
		pattern.rank = pattern.confidence * (if pattern.rate > 0 then pattern.rate else 0.5) * math.log10(pattern.uses + 1)
		pattern.successes = math.round(pattern.successes)
		pattern.last = string.sub(pattern.last, 1, 10)
		table.insert(all, pattern)
	end
	table.sort(all, function(a, b)
		if (a.pruned == nil) ~= (b.pruned == nil) then
			return a.pruned == nil
		end
		return if a.rank == b.rank then a.pattern < b.pattern else a.rank > b.rank
	end)
	return all
end

--- Whether a pattern fits one of the failures: a session with a like failure met it, its words are the failure's, or values
--- differ as they do by such a mistake, with an error of the same kind.
local function fits(pattern: Pattern, sides: { rank.Side }, similar: { [string]: boolean }): boolean
	for id in pattern.sessions do
		if similar[id] then
			return true
		end
	end
	local said = `{(string.gsub(pattern.pattern, "_", " "))} {pattern.template}`
	local own, told = words.of(said), mistakes.told(said)
	for _, side in sides do
		if pattern.error_types[side.error_type] == nil then
			continue
		end
		local shared, whole = 0, 0
		for word in own do
			whole += 1
			shared += if side.message[word] or side.test[word] then 1 else 0
		end
		local shows = mistakes.shared(side.mistakes, told, function()
			return 1
		end) == 1
		if shows or (whole > 0 and shared >= 2 and shared / whole >= MIN_SHARE) then
			return true
		end
	end
	return false
end

--- Returns the patterns that are offered for these failures, the best first: they helped often enough, say what to do, and
--- fit. `similar` are the ids of sessions with like failures.
function patterns.offered(failures: { report.Failure }, similar: { [string]: boolean }): { Pattern }
	local sides: { rank.Side } = {}
	for index, failure in failures do
		if index <= rank.MAX_FAILURES then
			table.insert(sides, rank.side(failure))
		end
	end
	local offered: { Pattern } = {}
	for _, pattern in patterns.all() do
		local good = pattern.pruned == nil and pattern.rate >= OFFERED_RATE and pattern.template ~= ""
		if good and #offered < MAX_OFFERED and fits(pattern, sides, similar) then
			table.insert(offered, pattern)
		end
	end
	return offered
end

--- Returns the patterns of a category whose fix helps often enough, for the schema's `get_fix_templates`.
function patterns.templates(category: string): { Pattern }
	local found: { Pattern } = {}
	for _, pattern in patterns.all() do
		if pattern.category == category and pattern.rate > patterns.TEMPLATE_RATE and pattern.template ~= "" then
			table.insert(found, pattern)
		end
	end
	return found
end

return patterns
