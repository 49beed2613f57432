--!strict
--- What earlier sessions know that may help now. Any flow beside this folder can use it: it takes `recall.collections` into
--- its manifest, calls `recall.find_in_run` (a command's output), `recall.find_described` (a person's words) or
--- `recall.find_similar`, and shows what they return with `recall.for_model` or `recall.for_person`. None of these ever fails:
--- what the memory cannot give is said once, and left out. `recall.query` and `recall.patterns` are for commands about the
--- memory itself, and do fail.

local best_effort = require("../best_effort")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local errors = require("./errors")
local git = require("@nietz/git")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local report = require("./parsers/report")
local results = require("./results")
local spec = require("./spec")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../translations")

local recall = {}

--- A failure of an earlier session, and what came of it.
export type Past = {
	session_id: string,
	--- The day on which it was seen.
	date: string,
	file: string,
	test: string,
	error_type: string,
	error_message: string,
	root_cause: string,
	category: string,
	fix_strategy: string,
	--- What was changed, if anything was.
	fix: string?,
	--- Whether the tests passed with it; nil when it was not tried.
	worked: boolean?,
	--- From 0 to 1.
	similarity: number,
}

export type Pattern = {
	pattern: string,
	category: string,
	--- What to do, in general words.
	template: string,
	--- How often it was used, and how often the tests passed then: counted, not claimed.
	uses: number,
	successes: number,
	rate: number,
	confidence: number,
	last: string,
	rank: number,
	--- Why it is not offered any more.
	pruned: string?,
}

local DAY = 86400
--- The most that is offered to a model: tokens, past failures, patterns.
local MAX_TOKENS, MAX_PASTS, MAX_PATTERNS = 2000, 3, 5
--- From this score on a past failure counts as similar; and how many days back is looked.
local MIN_SCORE, DAYS_BACK = 0.6, 90
--- A pattern is offered from the first rate on; below the second one it is given up, after so many uses.
local OFFERED_RATE, GIVEN_UP_RATE, MIN_USES = 0.6, 0.5, 3

local function tables(prefix: string): { [string]: nietz.Table }
	return {
		[prefix .. "_memory"] = {
			columns = {
				session_id = "/session_id",
				file_path = "/file_path",
				status = "/status",
				created_at = "/created_at",
				updated_at = "/updated_at",
			},
		},
		[prefix .. "_executions"] = {
			each = "/executions",
			columns = {
				attempt = "/attempt",
				total = "/test_results/total",
				failed = "/test_results/failed",
				category = "/analysis/root_cause_category",
				confidence = "/analysis/confidence",
				similar = "/analysis/similar_past_issues",
				verification = "/fix_applied/verification",
			},
		},
		[prefix .. "_failures"] = {
			each = "/executions/*/failures",
			columns = {
				test_name = "/test_name",
				test_file = "/test_file",
				error_type = "/error_type",
				error_message = "/error_message",
				file = "/source_location/file",
			},
		},
		[prefix .. "_patterns"] = {
			each = "/learnings/patterns_identified",
			columns = {
				pattern = "/pattern",
				category = "/category",
				frequency = "/frequency",
				fix_template = "/fix_template",
				effectiveness = "/effectiveness",
			},
		},
	}
end

local function collection(folder: string, prefix: string, formats: "on-save" | "never"): nietz.Collection
	return {
		path = `.nietz/debug-memory/{folder}/\{session_id}.yaml`,
		schema = "./common/memory/debug-memory.schema.yaml",
		formats = formats,
		index = tables(prefix),
		expects = {
			{ ordered = { "/created_at", "/updated_at" } },
			{ ordered = { "/created_at", "/executions/*/timestamp" } },
			{ numbered = "/executions/*/attempt" },
			{ rising = "/executions/*/timestamp" },
			{ ordered = { "/executions/*/test_results/passed", "/executions/*/test_results/total" } },
			{ ordered = { "/executions/*/test_results/failed", "/executions/*/test_results/total" } },
			{ ordered = { "/executions/*/test_results/skipped", "/executions/*/test_results/total" } },
		} :: { nietz.Expectation },
	}
end

--- For the manifest of a flow beside this folder: the sessions, and those in the archive.
recall.collections = {
	-- Formats such as UUIDs are checked only when a session is saved, because the schema's own example has no UUID. The archive
	-- takes whatever could be read.
	debug_memory = collection("sessions", "debug", "on-save"),
	debug_memory_archive = collection("archive", "archived", "never"),
} :: { [string]: nietz.Collection }

local TEXTS = translations.new({
	en = {
		without = "The debug memory cannot help here, and is left out: {why}",
		broken = "The debug memory leaves out what it cannot read: {why}",
		more = "{why} (and {count} more: `nietz check .nietz/debug-memory`)",
	},
	fr = {
		without = "La mémoire de débogage ne peut pas aider ici, on fait sans elle : {why}",
		broken = "La mémoire de débogage laisse de côté ce qu'elle ne peut pas lire : {why}",
		more = "{why} (et {count} de plus : `nietz check .nietz/debug-memory`)",
	},
})
local say = TEXTS.translator("en")

--- Says in this language, `en` or `fr`, what the memory cannot do.
function recall.set_language(language: string)
	say = TEXTS.translator(TEXTS.code(language))
end

--- Returns what `give` returns, or `fallback` where the memory fails.
local function or_fallback<T>(fallback: T, give: () -> T): T
	return best_effort.run(fallback, function(why: string): string
		return say("without", { why = why })
	end, give)
end

--- Says which memory files cannot be read, because nobody would notice that they are missing.
local function report_unreadable(broken: { { path: string, message: string } })
	if #broken > 0 then
		local first = broken[1].message
		local why = if #broken > 1 then say("more", { why = first, count = #broken - 1 }) else first
		best_effort.say_once(say("broken", { why = why }))
	end
end

--- Queries the sessions and, with `archive`, those in the archive; returns rows as tables by column. A value that a file
--- does not have is nil.
function recall.query(sql: string, bind: { string }, archive: boolean?): { documents.Document }
	local named = { "debug_memory" }
	if archive then
		table.insert(named, "debug_memory_archive")
	end
	local answer = documents.query(sql, { bind = bind, tables = named })
	report_unreadable(answer.broken or {})
	local rows = {}
	for _, cells in answer.rows do
		local row = {}
		for column, name in answer.columns do
			row[name] = if cells[column] == json.null then nil else cells[column]
		end
		table.insert(rows, row)
	end
	return rows
end

local function signature_words(message: string): { [string]: boolean }
	local set = {}
	for word in string.gmatch(errors.signature(message), "[%a_]%a[%w_]+") do
		set[word] = true
	end
	return set
end

--- Returns the share of words that two messages have in common.
local function overlap(a: { [string]: boolean }, b: { [string]: boolean }): number
	local both, all = 0, 0
	for word in a do
		all += 1
		both += if b[word] then 1 else 0
	end
	for word in b do
		all += if a[word] then 0 else 1
	end
	return if all == 0 then 0 else both / all
end

--- Returns the execution in which a session dealt with a test that failed; one that worked comes before one that did not.
local function best_execution(doc: documents.Document, test: string): documents.Document?
	local best: documents.Document? = nil
	for _, execution in doc.executions do
		local hit = false
		for _, failure in execution.failures or {} do
			hit = hit or failure.test_name == test
		end
		if hit and execution.analysis ~= nil then
			local worked = execution.fix_applied ~= nil and execution.fix_applied.verification == "passed"
			if best == nil or worked or best.fix_applied == nil then
				best = execution
			end
		end
	end
	return best
end

--- Whether a description names this file.
local function names_file(described: string?, path: string?): boolean
	local name = if path then string.match(path, "[^/]+$") else nil
	return described ~= nil and name ~= nil and string.find(described, name, 1, true) ~= nil
end

--- Returns the session of an id that a query gave; nil where its file has another name.
local function load_session(id: string): documents.Document?
	return or_fallback(nil :: documents.Document?, function(): documents.Document?
		return documents.collection("debug_memory"):load(id)
	end)
end

--- Returns past failures similar to these that were analysed, the most similar first, without those of the session `but`.
--- A failure that a person `described` has no file of its own: the files that the description names count instead.
local function search(failures: { report.Failure }, but: string?, described: string?): { Past }
	local since = clock.format(clock.unix() - DAYS_BACK * DAY)
	local found: { [string]: { score: number, row: documents.Document } } = {}
	for index, failure in failures do
		-- One cause often fails many tests, so the first failures stand for the rest.
		if index > 5 then
			break
		end
		local rows = recall.query(
			[[SELECT s.session_id, s.updated_at, f.test_name, f.test_file, f.error_type,
			substr(f.error_message, 1, 300) AS error_message, f.file
			FROM debug_failures f JOIN debug_memory s ON s.document = f.document
			WHERE f.error_type = ? AND (s.updated_at IS NULL OR s.updated_at > ?)
			ORDER BY s.updated_at DESC LIMIT 100]],
			{ failure.error_type, since }
		)
		local mine = signature_words(failure.error_message)
		local file = if failure.source_location then failure.source_location.file else failure.test_file
		for _, row in rows do
			if row.session_id == but then
				continue
			end
			local here = file ~= nil and (row.file == file or row.test_file == file)
			local same = row.test_name == failure.test_name or here or names_file(described, row.file)
			local score = 0.4 + 0.4 * overlap(mine, signature_words(row.error_message)) + (if same then 0.2 else 0)
			local best = found[row.session_id]
			if score >= MIN_SCORE and (best == nil or score > best.score) then
				found[row.session_id] = { score = score, row = row }
			end
		end
	end
	local ranked = {}
	for _, hit in found do
		table.insert(ranked, hit)
	end
	table.sort(ranked, function(a, b)
		return if a.score == b.score then a.row.session_id < b.row.session_id else a.score > b.score
	end)
	local past: { Past } = {}
	for _, hit in ranked do
		if #past == MAX_PASTS then
			break
		end
		local doc = load_session(hit.row.session_id)
		local execution = if doc then best_execution(doc, hit.row.test_name) else nil
		if doc ~= nil and execution ~= nil then
			local fix = execution.fix_applied
			local tried = fix ~= nil and fix.verification ~= nil and fix.verification ~= "pending"
			table.insert(past, {
				session_id = doc.session_id,
				date = string.sub(execution.timestamp, 1, 10),
				file = doc.file_path,
				test = hit.row.test_name,
				error_type = hit.row.error_type,
				error_message = text.truncate(hit.row.error_message, 200),
				root_cause = execution.analysis.root_cause,
				category = execution.analysis.root_cause_category or "other",
				fix_strategy = execution.analysis.fix_strategy,
				fix = if fix then fix.description else nil,
				worked = if tried then fix.verification == "passed" else nil,
				similarity = hit.score,
			})
		end
	end
	return past
end

--- Returns past failures similar to these that were analysed, the most similar first, without those of the session `but`.
function recall.find_similar(failures: { report.Failure }, but: string?): { Past }
	return or_fallback({}, function(): { Past }
		return search(failures, but)
	end)
end

--- Returns past failures similar to those in the output of a run in the worktree at `top`; none where no parser knows it.
function recall.find_in_run(ran: git.Ran, top: string): { Past }
	return or_fallback({}, function(): { Past }
		local read = results.read(ran, top)
		return if read.framework == "unknown" then {} else search(read.failures)
	end)
end

--- Returns past failures similar to one that a person describes in words.
function recall.find_described(described: string): { Past }
	local kind = errors.kind(nil, described)
	local failures: { report.Failure } = {}
	local kinds: { string } = if kind == "Other" then spec.error_types else { kind }
	for _, name in kinds do
		table.insert(failures, { test_name = "", error_type = name, error_message = described })
	end
	return or_fallback({}, function(): { Past }
		return search(failures, nil, described)
	end)
end

--- Returns the patterns of all sessions, archived ones too, the best first.
function recall.patterns(): { Pattern }
	local each = {}
	for _, prefix in { "debug", "archived" } do
		table.insert(
			each,
			[[SELECT p.*, s.updated_at, (SELECT avg(e.confidence) FROM ]]
				.. prefix
				.. [[_executions e WHERE e.document = p.document) AS confidence
			FROM ]]
				.. prefix
				.. [[_patterns p JOIN ]]
				.. prefix
				.. [[_memory s ON s.document = p.document]]
		)
	end
	local rows = recall.query([[SELECT pattern, max(category) AS category, sum(frequency) AS uses,
		sum(frequency * coalesce(effectiveness, 0)) AS successes, coalesce(avg(confidence), 1) AS confidence,
		coalesce(max(updated_at), '') AS last, max(updated_at || char(1) || fix_template) AS latest,
		max(fix_template) AS template FROM (]] .. table.concat(each, " UNION ALL ") .. [[) GROUP BY pattern ORDER BY pattern]], {}, true)
	local old = clock.format(clock.unix() - DAYS_BACK * DAY)
	local patterns: { Pattern } = {}
	for _, row in rows do
		local rate = row.successes / row.uses
		local pruned: string? = nil
		if rate < GIVEN_UP_RATE and row.uses >= MIN_USES then
			pruned = "it seldom helps"
		elseif row.last ~= "" and row.last < old then
			pruned = `not seen for {DAYS_BACK} days`
		end
		local latest = if row.latest then string.match(row.latest, "\1(.*)$") else nil
		table.insert(patterns, {
			pattern = row.pattern,
			category = row.category or "other",
			template = latest or row.template or "",
			uses = row.uses,
			successes = math.round(row.successes),
			rate = rate,
			confidence = row.confidence,
			last = string.sub(row.last, 1, 10),
			rank = row.confidence * (if rate > 0 then rate else 0.5) * math.log10(row.uses + 1),
			pruned = pruned,
		})
	end
	table.sort(patterns, function(a, b)
		if (a.pruned == nil) ~= (b.pruned == nil) then
			return a.pruned == nil
		end
		return if a.rank == b.rank then a.pattern < b.pattern else a.rank > b.rank
	end)
	return patterns
end

--- Returns the patterns that are offered: they helped often enough, and say what to do.
function recall.offered_patterns(_failures: { report.Failure }?): { Pattern }
	local offered: { Pattern } = {}
	for _, pattern in or_fallback({} :: { Pattern }, recall.patterns) do
		if #offered < MAX_PATTERNS and pattern.pruned == nil and pattern.rate >= OFFERED_RATE and pattern.template ~= "" then
			table.insert(offered, pattern)
		end
	end
	return offered
end

local function percent(rate: number): string
	return `{math.round(rate * 100)} %`
end

--- Renders past failures and patterns for a model, without the least similar ones where they would be too many tokens.
local function render_within_limit(past: { Past }, patterns: { Pattern }): string
	local kept_past, kept_patterns = table.clone(past), table.clone(patterns)
	while #kept_past + #kept_patterns > 0 do
		local shown = {}
		for _, pattern in kept_patterns do
			local row = table.clone(pattern) :: documents.Document
			row.rate = percent(pattern.rate)
			table.insert(shown, row)
		end
		local said = text.trim(template.render("./prompts/recall.md", { past = kept_past, patterns = shown }))
		if llm.count(said) <= MAX_TOKENS then
			return said
		end
		-- The last one is the least similar, or ranks lowest.
		table.remove(if #kept_patterns > #kept_past then kept_patterns else kept_past)
	end
	return ""
end

--- Returns past failures and patterns as a text for a model: observations with their dates and success rates, in at most
--- 2,000 tokens. Empty where there is nothing.
function recall.for_model(past: { Past }, patterns: { Pattern }): string
	return or_fallback("", function(): string
		return render_within_limit(past, patterns)
	end)
end

--- Returns a question for each past failure, for a person who debugs; a question claims nothing. English, or French (`fr`).
function recall.for_person(past: { Past }, language: string?): { string }
	local path = if language == "fr" then "./prompts/question.fr.md" else "./prompts/question.en.md"
	return or_fallback({}, function(): { string }
		local questions = {}
		for _, item in past do
			table.insert(questions, text.trim(template.render(path, { past = item })))
		end
		return questions
	end)
end

return recall
