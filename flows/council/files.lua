--!strict
--- The one file that a session may be written to: where the user says, as JSON or YAML by its ending.

local documents = require("@nietz/documents")
local nietz = require("@nietz")
local rules = require("./rules")
local ui = require("@nietz/ui")

local files = {}

--- What is worth a remark where it is otherwise; what is a fault stands in rules.lua.
local expects = {
	{ ordered = { "/createdAt", "/updatedAt" } },
	{ ordered = { "/clarificationQuestions/*/createdAt", "/clarificationQuestions/*/answeredAt" } },
	{ ordered = { "/clarificationQuestions/*/createdAt", "/clarificationQuestions/*/userAnswer/createdAt" } },
	{ ordered = { "/councilDiscussions/*/exchangeStarts", "/councilDiscussions/*/exchangeEnds" } },
	{ numbered = "/messageTurns/*/sequenceNumber" },
	{ numbered = "/councilDiscussions/*/cycleNumber" },
	{ numbered = "/clarificationQuestions/*/sequenceInRound", within = { "/clarificationQuestions/*/roundNumber" } },
} :: { any }

--- One schema for both, whatever the file's ending says.
local function sessions(format: "yaml" | "json"): nietz.Collection
	return {
		path = "{*}",
		format = format,
		schema = "./council/session.schema.json",
		rules = rules.check,
		expects = expects,
	}
end

--- `sessions` is read as YAML, of which JSON is a part: `nietz check --as council:sessions FILE` takes both.
files.COLLECTIONS = {
	sessions = sessions("yaml"),
	sessions_json = sessions("json"),
} :: { [string]: nietz.Collection }

local yaml, json = documents.collection("sessions"), documents.collection("sessions_json")

--- Returns the collection that a file belongs to; raises where its ending says no format.
function files.collection(file: string): documents.Handle
	local ending = string.match(string.lower(file), "%.(%a+)$")
	if ending == "json" then
		return json
	elseif ending == "yaml" or ending == "yml" then
		return yaml
	end
	return nietz.usage(`"{file}" is neither .json nor .yaml`, "such as --save decision.yaml")
end

--- Raises where a file is there already: it is not written over, and that is better said before a debate than after it.
function files.free(file: string)
	local ok, found = pcall(function(): any
		return files.collection(file):load(file)
	end)
	if not ok and type(found) == "table" and found.code ~= "document-invalid" and found.code ~= "document-unreadable" then
		error(found, 0)
	elseif not ok or found ~= nil then
		nietz.usage(`{file} is there already`, "give another name, or remove it")
	end
end

--- Raises what is wrong with a session: that would be a fault of this flow.
function files.check(doc: any)
	local faults: { string } = {}
	for _, fault in yaml:check(doc) do
		if (fault :: any).severity ~= "note" then
			table.insert(faults, `{fault.pointer}: {fault.message}`)
		end
	end
	if #faults > 0 then
		nietz.fail(`the session broke its own rules: {table.concat(faults, "; ")}`)
	end
end

--- Writes a session, whole and valid or not at all.
function files.save(file: string, doc: any)
	local path = files.collection(file):save(doc, { key = file :: any })
	ui.say(`Session saved: \`{path}\``)
end

return files
