--!strict
--- The commands about the memory: those that query it, and the one that archives sessions.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local list = require("../common/list")
local memory_files = require("./memory_files")
local nietz = require("@nietz")
local query_output = require("../common/query_output")
local recall = require("../common/memory/recall")
local show = require("./show")
local spec = require("../common/memory/spec")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local commands = {}

commands.ALL = {} :: { [string]: nietz.Command }

local FORMAT: nietz.Param = { type = "string", choices = { "table", "json", "csv" }, default = "table", help = "How to answer" }

--- Returns a time as the memory writes it, from an ISO 8601 time, a day, or a number of days such as `7d`.
local function since_time(given: string?): string
	if given == nil then
		return ""
	end
	local days = tonumber(string.match(given, "^(%d+)d$"))
	local seconds = if days then clock.unix() - days * 86400 else clock.parse(given) or clock.parse(given .. "T00:00:00Z")
	if seconds == nil then
		nietz.usage(`--since {given} is no time`, "use a day such as 2026-01-31, or a number of days such as 7d")
	end
	return clock.format(seconds :: number)
end

--- Returns a pattern for LIKE: the text itself where it has a `%`, else one for paths that contain it.
local function like_pattern(given: string): string
	return if string.find(given, "%", 1, true) ~= nil then given else `%{given}%`
end

local function ask(sql: string, bind: { any }): documents.Answer
	return documents.query(sql, { bind = bind, tables = { "debug_memory" } })
end

--- The queries that the schema names, over the collection's tables.
local QUERIES = {
	find_similar_failures = function(params)
		local where, bind = {}, {}
		if params.error_type ~= nil then
			table.insert(where, "f.error_type = ?")
			table.insert(bind, params.error_type)
		end
		if params.file ~= nil then
			-- A session about a file counts, too, where no trace named a place.
			table.insert(where, "(f.file LIKE ? OR f.file IS NULL AND s.file_path LIKE ?)")
			table.insert(bind, like_pattern(params.file))
			table.insert(bind, like_pattern(params.file))
		end
		if #where == 0 then
			nietz.usage("find_similar_failures needs --error-type, --file or both", `--error-type {table.concat(spec.error_types, "|")}`)
		end
		return ask([[SELECT s.session_id, s.file_path, s.status, s.updated_at, min(f.test_name) AS test, f.error_type,
			coalesce(f.file, s.file_path) AS file FROM debug_failures f JOIN debug_memory s ON s.document = f.document
			WHERE ]] .. table.concat(where, " AND ") .. [[ GROUP BY s.document ORDER BY s.updated_at DESC LIMIT 10]], bind)
	end,
	get_fix_templates = function(params)
		if params.category == nil then
			nietz.usage("get_fix_templates needs --category", table.concat(spec.causes, ", "))
		end
		-- Summed over all sessions, as `patterns` and `stats` count: what helped once and failed four times is no template.
		local found = recall.templates(params.category)
		local rows = list.map(found, function(pattern): { any }
			return { pattern.pattern, pattern.category, pattern.uses, pattern.rate, pattern.template }
		end)
		return { columns = { "pattern", "category", "frequency", "effectiveness", "fix_template" }, rows = json.array(rows), cut = false }
	end,
	recent_escalations = function(params)
		return ask(
			[[SELECT s.session_id, s.file_path, s.status, s.updated_at FROM debug_memory s
			WHERE s.status = 'escalated' AND s.updated_at > ? ORDER BY s.updated_at DESC]],
			{ since_time(params.since) }
		)
	end,
} :: { [string]: (params: nietz.Values) -> documents.Answer }

for name in spec.queries do
	assert(QUERIES[name] ~= nil, `the schema's query {name} is not known`)
end

--- Searches by words: for sessions with a failure, a cause, a file or a pattern that has them.
local function search_by_words(params: nietz.Values): documents.Answer
	local words = if params.what then like_pattern(params.what) else "%"
	local where, bind =
		{
			[[(f.test_name LIKE ? OR f.error_message LIKE ? OR s.file_path LIKE ? OR s.problem LIKE ?
			OR EXISTS (SELECT 1 FROM debug_executions e WHERE e.document = s.document AND (e.root_cause LIKE ? OR e.category LIKE ?))
			OR EXISTS (SELECT 1 FROM debug_patterns p WHERE p.document = s.document AND (p.pattern LIKE ? OR p.category LIKE ?)))]],
		}, table.create(8, words)
	for _, filter in
		{ { "error_type", "f.error_type = ?" }, { "file", "coalesce(f.file, s.file_path) LIKE ?" }, { "since", "s.updated_at > ?" } }
	do
		local given = params[filter[1]]
		if given ~= nil then
			table.insert(where, filter[2])
			table.insert(
				bind,
				if filter[1] == "file" then like_pattern(given) elseif filter[1] == "since" then since_time(given) else given
			)
		end
	end
	return ask([[SELECT s.session_id, s.file_path, s.status, s.updated_at, min(f.test_name) AS test, f.error_type
		FROM debug_memory s LEFT JOIN debug_failures f ON f.document = s.document
		WHERE ]] .. table.concat(where, " AND ") .. [[ GROUP BY s.document ORDER BY s.updated_at DESC LIMIT 50]], bind)
end

--- Refuses a word that is nearly a query's name: as words it would find nothing, and look like an answer.
local function check_name(what: string?)
	local names = {}
	for name in QUERIES do
		table.insert(names, name)
	end
	local near = if what ~= nil and QUERIES[what] == nil then text.nearest(what, names) else nil
	if near ~= nil then
		nietz.usage(`there is no query {what}: did you mean {near}?`, "several words are searched for as words")
	end
end

commands.ALL.query = {
	summary = "Asks past sessions: by a query of the schema, or by words",
	reads_only = true,
	params = {
		what = { type = "string", positional = true, help = "find_similar_failures, get_fix_templates, recent_escalations; or words" },
		error_type = { type = "string", choices = spec.error_types, help = "The kind of error" },
		file = { type = "string", help = "Where it came from: a part of the path, or a pattern with %" },
		category = { type = "string", choices = spec.causes, help = "The kind of root cause" },
		since = { type = "string", help = "A day such as 2026-01-31, or a number of days such as 7d" },
		format = FORMAT,
	} :: { [string]: nietz.Param },
	run = function(ctx: nietz.Context)
		check_name(ctx.params.what)
		local named = QUERIES[ctx.params.what or ""]
		local answer = (named or search_by_words)(ctx.params)
		query_output.show(answer, ctx.params.format)
		return { columns = answer.columns, rows = answer.rows }
	end,
}

commands.ALL.patterns = {
	summary = "Shows what mistakes were mended how, and how often that helped",
	reads_only = true,
	params = { all = { type = "boolean", default = false, help = "Those that are not offered any more, too" } },
	run = function(ctx: nietz.Context)
		local lines, kept = {}, {}
		for _, pattern in recall.patterns() do
			if pattern.pruned == nil or ctx.params.all then
				local why = if pattern.pruned then ` (not offered: {pattern.pruned})` else ""
				table.insert(
					lines,
					`{pattern.pattern} ({pattern.category}): worked {pattern.successes} of {pattern.uses} times, last on {pattern.last}{why}\n  {pattern.template}`
				)
				table.insert(kept, pattern)
			end
		end
		ui.say(if #lines > 0 then "```\n" .. table.concat(lines, "\n") .. "\n```" else "There is no pattern yet.")
		return { patterns = kept }
	end,
}

local function top_counts(sql: string): string
	local parts = {}
	for _, row in recall.query(sql, {}, true) do
		table.insert(parts, `{row.name} {row.count}`)
	end
	return if #parts > 0 then table.concat(parts, ", ") else "none"
end

--- Returns a share as a percentage, or a dash where there is nothing to share.
local function percent(part: number, whole: number): string
	return if whole == 0 then "–" else `{math.round(100 * part / whole)} %`
end

commands.ALL.stats = {
	summary = "Shows how sessions went: passes, attempts, errors, patterns, files",
	reads_only = true,
	run = function()
		local sums = recall.query(
			[[SELECT count(*) AS sessions, coalesce(sum(status = 'passed'), 0) AS passed,
			coalesce(sum(status = 'escalated'), 0) AS escalated, coalesce(sum(status != 'in_progress'), 0) AS ended,
			coalesce(avg(runs), 0) AS runs, coalesce(sum(fixes > 0 AND status != 'in_progress'), 0) AS mended,
			coalesce(sum(status = 'passed' AND fixes = 1), 0) AS first,
			coalesce(sum(reused), 0) AS reused FROM (
			SELECT s.status, (SELECT count(*) FROM debug_executions e WHERE e.document = s.document) AS runs,
			(SELECT count(e.verification) FROM debug_executions e WHERE e.document = s.document) AS fixes,
			EXISTS (SELECT 1 FROM debug_executions e WHERE e.document = s.document AND e.similar IS NOT NULL) AS reused FROM debug_memory s
			UNION ALL
			SELECT s.status, (SELECT count(*) FROM archived_executions e WHERE e.document = s.document),
			(SELECT count(e.verification) FROM archived_executions e WHERE e.document = s.document),
			EXISTS (SELECT 1 FROM archived_executions e WHERE e.document = s.document AND e.similar IS NOT NULL) FROM archived_memory s)]],
			{},
			true
		)[1]
		local patterns = {}
		for index, pattern in recall.patterns() do
			if index <= 5 and pattern.pruned == nil then
				table.insert(patterns, `{pattern.pattern} {pattern.successes}/{pattern.uses}`)
			end
		end
		local lines = {
			`sessions {sums.sessions}: {sums.passed} passed, {sums.escalated} escalated`,
			`pass rate {percent(sums.passed, sums.ended)} (with a fix, at the first one: {percent(sums.first, sums.mended)}), `
				.. `escalated {percent(sums.escalated, sums.ended)}, memory used in {percent(sums.reused, sums.sessions)}`,
			`test runs a session {string.format("%.1f", sums.runs)}`,
			"errors: " .. top_counts([[SELECT error_type AS name, count(*) AS count FROM (SELECT error_type FROM debug_failures
				UNION ALL SELECT error_type FROM archived_failures) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5]]),
			"patterns: " .. (if #patterns > 0 then table.concat(patterns, ", ") else "none"),
			"files: "
				.. top_counts([[SELECT file AS name, count(*) AS count FROM (
				SELECT coalesce(f.file, nullif(s.file_path, 'unknown')) AS file FROM debug_failures f JOIN debug_memory s ON s.document = f.document
				UNION ALL
				SELECT coalesce(f.file, nullif(s.file_path, 'unknown')) FROM archived_failures f JOIN archived_memory s ON s.document = f.document)
				WHERE file IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5]]),
		}
		ui.say("```\n" .. table.concat(lines, "\n") .. "\n```")
		return sums
	end,
}

commands.ALL.show = {
	summary = "Shows a session with all that it knows",
	reads_only = true,
	params = { session = { type = "string", positional = true, help = "The session [default: the latest]" } },
	run = function(ctx: nietz.Context)
		local id = ctx.params.session
		if id == nil then
			local latest = recall.query("SELECT session_id FROM debug_memory ORDER BY updated_at DESC LIMIT 1", {})[1]
			id = if latest then latest.session_id else nil
		end
		local doc = if id then memory_files.load(id) else nil
		if doc == nil then
			return nietz.usage("there is no such session", "nietz run debug-memory query")
		end
		show.session(doc)
		return { session = doc.session_id, status = doc.status }
	end,
}

commands.ALL.clear = {
	summary = "Moves sessions to the archive, after asking",
	params = {
		file = { type = "string", help = "Only those about such a file: a part of its path, or a pattern with %" },
		error_type = { type = "string", choices = spec.error_types, help = "Only those with such an error" },
		before = { type = "string", help = "Only those last changed before this day" },
		yes = { type = "boolean", default = false, help = "Do not ask" },
	} :: { [string]: nietz.Param },
	run = function(ctx: nietz.Context)
		local where, bind = { "1" }, {} :: { string }
		for _, filter in
			{
				{ "file", "s.file_path LIKE ?" },
				{ "error_type", "EXISTS (SELECT 1 FROM debug_failures f WHERE f.document = s.document AND f.error_type = ?)" },
				{ "before", "s.updated_at < ?" },
			}
		do
			local given = ctx.params[filter[1]]
			if given ~= nil then
				table.insert(where, filter[2])
				table.insert(
					bind,
					if filter[1] == "file" then like_pattern(given) elseif filter[1] == "before" then since_time(given) else given
				)
			end
		end
		local ids = {}
		for _, row in recall.query(`SELECT s.session_id FROM debug_memory s WHERE {table.concat(where, " AND ")} ORDER BY 1`, bind) do
			table.insert(ids, row.session_id)
		end
		if #ids == 0 then
			ui.say("There is nothing to clear.")
			return { archived = 0 }
		end
		local sure = ctx.params.yes
			or ui.confirm({ id = "clear", prompt = `Move {#ids} session{if #ids == 1 then "" else "s"} to the archive?`, default = false })
		local moved = if sure then memory_files.archive(ids) else 0
		ui.say(
			if sure
				then `{moved} session{if moved == 1 then " is" else "s are"} in .nietz/debug-memory/archive.`
				else "Nothing was changed."
		)
		return { archived = moved }
	end,
}

return commands
