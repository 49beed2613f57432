--!strict
--- Where the memory's sessions stand, and how they are asked. Whoever only wants to know what helps takes `recall`.

local best_effort = require("../best_effort")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local migrations = require("./migrations")
local nietz = require("@nietz")
local spec = require("./spec")
local translations = require("../translations")

local store = {}

local function tables(prefix: string): { [string]: nietz.Table }
	return {
		[prefix .. "_memory"] = {
			columns = {
				session_id = "/session_id",
				file_path = "/file_path",
				status = "/status",
				created_at = "/created_at",
				updated_at = "/updated_at",
				problem = "/nietz/problem",
			},
		},
		[prefix .. "_executions"] = {
			each = "/executions",
			columns = {
				attempt = "/attempt",
				timestamp = "/timestamp",
				total = "/test_results/total",
				failed = "/test_results/failed",
				skipped = "/test_results/skipped",
				failures = "/failures",
				root_cause = "/analysis/root_cause",
				category = "/analysis/root_cause_category",
				strategy = "/analysis/fix_strategy",
				confidence = "/analysis/confidence",
				related = "/analysis/related_failures",
				similar = "/analysis/similar_past_issues",
				fix = "/fix_applied/description",
				files_changed = "/fix_applied/files_changed",
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
		schema = spec.session,
		formats = formats,
		version = {
			field = "/nietz/version",
			current = migrations.VERSION,
			migrations = migrations.all,
			read_newer = true,
			formerly = migrations.FORMERLY,
		},
		index = tables(prefix),
		shared = true,
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

--- For the manifest of a flow in the folder above `common`: the sessions, and those in the archive.
store.collections = {
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
		kept = "What was found out is in the debug memory: {path}",
		not_kept = "This is not kept in the debug memory: {why}",
		no_results = "no known test runner wrote what the command showed",
		not_passed = "the command did not show that all tests pass",
		no_cause = "the cause is not told in at least 20 letters (`/solved` takes it)",
	},
	fr = {
		without = "La mémoire de débogage ne peut pas aider ici, on fait sans elle : {why}",
		broken = "La mémoire de débogage laisse de côté ce qu'elle ne peut pas lire : {why}",
		more = "{why} (et {count} de plus : `nietz check .nietz/debug-memory`)",
		kept = "Ce qui a été trouvé est dans la mémoire de débogage : {path}",
		not_kept = "Ceci n'entre pas dans la mémoire de débogage : {why}",
		no_results = "aucun lanceur de tests connu n'a écrit ce que la commande a montré",
		not_passed = "la commande n'a pas montré que tous les tests passent",
		no_cause = "la cause n'est pas dite en 20 lettres au moins (`/solved` la prend)",
	},
})
local say = TEXTS.translator("en")

--- Says in this language, `en` or `fr`, what the memory cannot do.
function store.set_language(language: string)
	say = TEXTS.translator(TEXTS.code(language))
end

--- Returns a text about the memory, in the language that was set.
function store.text(key: string, vars: { [string]: any }?): string
	return say(key, vars or {})
end

--- Returns what `give` returns, or `fallback` where the memory fails: whatever it holds, it ends no session. Everything that
--- a session asks of the memory goes through here.
function store.guarded<T>(fallback: T, give: () -> T): T
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
function store.query(sql: string, bind: { any }, archive: boolean?): { documents.Document }
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

return store
