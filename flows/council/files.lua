--!strict
--- The file that a session is written to with `--save` or `export`: where the user says, as JSON or YAML, or as the record of a
--- decision in Markdown (ADR), by its ending.

local documents = require("@nietz/documents")
local lang = require("./lang")
local migrations = require("./migrations")
local nietz = require("@nietz")
local rules = require("./rules")
local screens = require("./screens")
local session = require("./session")
local ui = require("@nietz/ui")
local worth = require("./worth")

local files = {}

--- Remarks of `nietz check`; faults are in rules.lua.
local expects = {
	{ ordered = { "/createdAt", "/updatedAt" } },
	{ ordered = { "/clarificationQuestions/*/createdAt", "/clarificationQuestions/*/answeredAt" } },
	{ ordered = { "/clarificationQuestions/*/createdAt", "/clarificationQuestions/*/userAnswer/createdAt" } },
	{ ordered = { "/councilDiscussions/*/exchangeStarts", "/councilDiscussions/*/exchangeEnds" } },
	{ numbered = "/messageTurns/*/sequenceNumber" },
	{ numbered = "/councilDiscussions/*/cycleNumber" },
	{ numbered = "/clarificationQuestions/*/sequenceInRound", within = { "/clarificationQuestions/*/roundNumber" } },
} :: { any }

--- Declares the collection of session files in one format; the schema is the same.
local function declare_sessions(format: "yaml" | "json"): nietz.Collection
	return {
		path = "{*}",
		format = format,
		schema = "./council/session.schema.json",
		version = {
			field = "/nietz/version",
			current = session.VERSION,
			formerly = migrations.FORMERLY,
			migrations = migrations.all,
		},
		rules = rules.check,
		shared = true,
		expects = expects,
	}
end

--- `sessions` is read as YAML, of which JSON is a part: `nietz check --as council:sessions FILE` takes both.
files.COLLECTIONS = {
	sessions = declare_sessions("yaml"),
	sessions_json = declare_sessions("json"),
	records = { path = "{*}", format = "text", shared = true, schema = { type = "string", minLength = 1 } },
	worth = worth.COLLECTION,
} :: { [string]: nietz.Collection }

local as_yaml, as_json = documents.collection("sessions"), documents.collection("sessions_json")
local as_record = documents.collection("records")

--- Returns the collection that a file belongs to; raises where its ending says no format.
function files.collection_of(file: string): documents.Handle
	local ending = string.match(string.lower(file), "%.(%a+)$")
	if ending == "json" then
		return as_json
	elseif ending == "yaml" or ending == "yml" then
		return as_yaml
	elseif ending == "md" then
		return as_record
	end
	return nietz.usage(`"{file}" is neither .json, .yaml nor .md`, "such as --save decision.yaml")
end

--- Raises where a file exists already. It is not overwritten, and the user hears that before the debate and not after it.
function files.require_unused(file: string)
	local ok, found = pcall(function(): any
		return files.collection_of(file):load(file)
	end)
	if not ok and type(found) == "table" and found.code ~= "document-invalid" and found.code ~= "document-unreadable" then
		error(found, 0)
	elseif not ok or found ~= nil then
		nietz.usage(`{file} is there already`, "give another name, or remove it")
	end
end

--- Raises where a session is invalid, which would be an error of this flow.
function files.require_valid(doc: session.Session)
	local faults: { string } = {}
	for _, fault in as_yaml:check(doc) do
		if (fault :: any).severity ~= "note" then
			table.insert(faults, `{fault.pointer}: {fault.message}`)
		end
	end
	if #faults > 0 then
		nietz.fail(`the session broke its own rules: {table.concat(faults, "; ")}`)
	end
end

--- Writes a session, if it is valid; as a record of its decision where the file is Markdown.
function files.save(file: string, doc: session.Session, language: string)
	local t = lang.translator(lang.code(language))
	local handle = files.collection_of(file)
	if type(doc) ~= "table" or doc.sessionId == nil then
		nietz.usage("that run has no session: a plain answer was taken in place of a council", "nothing is written")
	elseif handle == as_record and doc.metadata.decision == nil then
		nietz.usage("that session has no decision yet", "write it as .json or .yaml")
	end
	local path = handle:save(if handle == as_record then screens.record(doc, t) :: any else doc, { key = file :: any })
	ui.say(t("saved", { path = path }))
end

return files
