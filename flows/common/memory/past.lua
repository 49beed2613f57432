--!strict
--- Reads what earlier sessions went through: each failure that was analysed, or that something was tried on, with what came of
--- it.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local rank = require("./rank")
local report = require("./parsers/report")
local store = require("./store")
local text = require("@nietz/text")
local verdicts = require("./verdicts")
local words = require("./words")

local past = {}

--- One execution of a session that says something: what failed, why, what was tried, and what that came to.
export type Entry = {
	document: string,
	session_id: string,
	--- When it was seen; empty where the file does not say.
	seen: string,
	file: string,
	failures: { report.Failure },
	sides: { rank.Side },
	told: rank.Told,
	root_cause: string?,
	category: string,
	strategy: string?,
	fix: string?,
	--- Whether the fix helped; nil where none was tried, or nothing is known of it.
	helped: boolean?,
	--- What the tests showed after the fix.
	ended: string?,
}

--- How many days back is looked, how many executions are read, and how many failures of each: one cause often fails many
--- tests, so the first ones stand for the rest.
past.DAYS_BACK = 90
local MAX_EXECUTIONS, MAX_FAILURES = 200, 3

local function decoded(value: any): { string }
	local ok, list = pcall(json.decode, value)
	return if ok and type(list) == "table" then list else {}
end

--- Returns the executions by the path of their session, each in its order.
local function executions(since: string): { documents.Document }
	return store.query(
		[[SELECT e.document, e.attempt, e.timestamp, e.total, e.failed, e.skipped, e.category, e.files_changed, e.verification,
		substr(e.root_cause, 1, 400) AS root_cause, substr(e.strategy, 1, 400) AS strategy, substr(e.fix, 1, 600) AS fix,
		(SELECT json_group_array(json_extract(f.value, '$.test_name')) FROM json_each(e.failures) f) AS failing,
		s.session_id, s.file_path, substr(s.problem, 1, 400) AS problem
		FROM debug_executions e JOIN debug_memory s ON s.document = e.document
		WHERE coalesce(s.updated_at, e.timestamp) > ?
		ORDER BY coalesce(s.updated_at, e.timestamp) DESC, e.document, e.attempt LIMIT ]] .. MAX_EXECUTIONS,
		{ since }
	)
end

--- Returns the first failures of each execution, by session and attempt.
local function failures(since: string): { [string]: { report.Failure } }
	local rows = store.query(
		[[SELECT e.document, e.attempt, substr(json_extract(f.value, '$.test_name'), 1, 200) AS test_name,
		json_extract(f.value, '$.test_file') AS test_file, json_extract(f.value, '$.error_type') AS error_type,
		substr(json_extract(f.value, '$.error_message'), 1, 500) AS error_message,
		substr(json_extract(f.value, '$.stack_trace'), 1, 1200) AS stack_trace,
		substr(json_extract(f.value, '$.expected'), 1, 200) AS expected, substr(json_extract(f.value, '$.actual'), 1, 200) AS actual,
		json_extract(f.value, '$.source_location.file') AS file, json_extract(f.value, '$.source_location.line') AS line,
		json_extract(f.value, '$.source_location.function') AS name
		FROM debug_executions e JOIN debug_memory s ON s.document = e.document, json_each(e.failures) f
		WHERE f.key < ? AND coalesce(s.updated_at, e.timestamp) > ?
		ORDER BY coalesce(s.updated_at, e.timestamp) DESC, e.document, e.attempt, f.key LIMIT ]] .. MAX_EXECUTIONS * MAX_FAILURES,
		{ MAX_FAILURES, since }
	)
	local found: { [string]: { report.Failure } } = {}
	for _, row in rows do
		local key = `{row.document} {row.attempt}`
		local list = found[key] or {}
		found[key] = list
		table.insert(list, {
			test_name = row.test_name,
			test_file = row.test_file,
			error_type = row.error_type,
			error_message = row.error_message,
			stack_trace = row.stack_trace,
			expected = row.expected,
			actual = row.actual,
			source_location = if row.file then { file = row.file, line = row.line, ["function"] = row.name } else nil,
		})
	end
	return found
end

local function run_of(row: documents.Document): verdicts.Run
	return { total = row.total, failed = row.failed, skipped = row.skipped or 0, failing = decoded(row.failing) }
end

--- Returns whether a fix helped and what the run after it showed: what it was recorded as, and never as a help where the next
--- run shows that tests are gone, skipped or newly failing.
local function outcome(row: documents.Document, following: documents.Document?): (boolean?, string?)
	local recorded = row.verification
	if recorded == nil or recorded == "pending" then
		return nil, nil
	elseif following == nil or following.document ~= row.document then
		return recorded == "passed", nil
	end
	local verdict = verdicts.judge(run_of(row), run_of(following :: documents.Document))
	return recorded == "passed" and verdict.helped, verdict.why
end

--- Returns what the memory has of the last days, the newest first, without the session `but`.
function past.entries(but: string?): { Entry }
	local since = clock.format(clock.unix() - past.DAYS_BACK * 86400)
	local rows, failed = executions(since), failures(since)
	local entries: { Entry } = {}
	for index, row in rows do
		local tried = row.root_cause ~= nil or row.fix ~= nil
		if row.session_id == but or not tried then
			continue
		end
		local helped, ended = outcome(row, rows[index + 1])
		local own: { report.Failure } = failed[`{row.document} {row.attempt}`] or {}
		local changed = decoded(row.files_changed)
		local subject = table.clone(changed)
		table.insert(subject, row.file_path)
		local sides: { rank.Side } = {}
		for _, failure in own do
			table.insert(sides, rank.side(failure, true))
		end
		if #sides == 0 then
			-- Nothing failed when it was recorded: what was told of it stands for it.
			table.insert(sides, rank.side({ test_name = "", error_type = "Other", error_message = row.problem or "" }, true))
		end
		table.insert(entries, {
			document = row.document,
			session_id = row.session_id,
			seen = row.timestamp or "",
			file = row.file_path,
			failures = own,
			sides = sides,
			told = rank.told({ row.root_cause or "", row.strategy or "", row.fix or "", row.problem or "" }, row.category, subject),
			root_cause = row.root_cause,
			category = row.category or "other",
			strategy = row.strategy,
			fix = if row.fix then text.truncate(row.fix, 400) else nil,
			helped = helped,
			ended = ended,
		})
	end
	return entries
end

--- Returns in how many of the entries each word stands.
function past.frequencies(entries: { Entry }): words.Frequencies
	local sets: { words.Set } = {}
	for _, entry in entries do
		local all: words.Set = {}
		for _, side in entry.sides do
			for word in rank.all_words(side, entry.told) do
				all[word] = true
			end
		end
		table.insert(sets, all)
	end
	return words.frequencies(sets)
end

return past
