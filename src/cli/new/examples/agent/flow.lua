--!strict
--- NAME: an agent that answers from the files of this folder. It searches and reads by tools, shows where each claim stands,
--- and asks you before it keeps a note. Edit anything here and in `NAME/`; its tests are in `tests/cassettes/NAME/`, and
--- `nietz test` plays them without a model.

local documents = require("@nietz/documents")
local files = require("@nietz/files")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

type Claim = { text: string, file: string, line: number }

local LINES = 200 -- How many lines of a file the model gets at once.
local MATCHES = 50 -- How many matches of a search.
local ANSWER = json.load("./NAME/answer.schema.json")

-- It may be asked for while the file is loaded: nothing is read before a run does so.
local notes = documents.collection("notes")

--- Returns the JSON Schema of a tool's arguments, all of which are needed.
local function arguments(properties: { [string]: any }): llm.Schema
	local required = json.array {}
	for name in properties do
		table.insert(required, name)
	end
	table.sort(required)
	return { type = "object", properties = properties, required = required, additionalProperties = false }
end

--- The lines that match. A wrong expression raises an error, which is told to the model: it tries again.
local function search(given: { pattern: string }): string
	local found = files.grep(given.pattern, nil, { most = MATCHES })
	local out = {}
	for _, line in found.lines do
		table.insert(out, `{line.path}:{line.line}: {line.text}`)
	end
	if found.cut then
		table.insert(out, "There is more: search for something narrower.")
	end
	return if #out > 0 then table.concat(out, "\n") else "Nothing matches."
end

--- Some lines of a file with their numbers; which they were is kept in `seen`.
local function read(given: { path: string, from: number }, seen: { [string]: boolean }): string
	local part = files.read_lines(given.path, given.from, LINES)
	if part == nil then
		return `There is no file {given.path}.`
	end
	local out, number = {}, part.first
	for line in string.gmatch(part.text .. "\n", "(.-)\n") do
		table.insert(out, string.format("%5d  %s", number, line))
		seen[`{part.path}:{number}`] = true
		number += 1
	end
	return `{part.path}, lines {part.first} to {number - 1} of {part.lines}:\n` .. table.concat(out, "\n")
end

--- What the model can do. `approve` has the host ask a person before each call; where nobody is there, the run waits.
local function tools(seen: { [string]: boolean }): { [string]: llm.Tool }
	return {
		search = {
			description = "Finds lines of this folder's files by a regular expression",
			parameters = arguments { pattern = { type = "string", minLength = 1 } },
			run = search,
		},
		read = {
			description = `Reads up to {LINES} lines of a file, from a line on`,
			parameters = arguments { path = { type = "string" }, from = { type = "integer", minimum = 1 } },
			run = function(given)
				return read(given, seen)
			end,
		},
		note = {
			description = "Keeps a short note for later; its name has lower-case letters, digits and hyphens",
			parameters = arguments {
				name = { type = "string", pattern = "^[a-z0-9-]{1,40}$" },
				text = { type = "string", minLength = 1, maxLength = 2000 },
			},
			approve = true,
			run = function(given)
				return `Kept in {notes:save(given.text, { key = { name = given.name }, overwrite = true })}.`
			end,
		},
	}
end

--- What a schema cannot say of the answer: each claim stands in a line that was read. The model is told, and tries again.
local function unread(claims: { Claim }, seen: { [string]: boolean }): string?
	for n, claim in claims do
		if not seen[`{claim.file}:{claim.line}`] then
			return `/claims/{n - 1}: you have not read {claim.file}:{claim.line}`
		end
	end
	return nil
end

return nietz.flow {
	name = "NAME",
	host_api = 2,
	summary = "Answers from the files of this folder, shows where it stands, and asks before it keeps a note",
	params = {
		question = { type = "string", positional = true, required = true, help = "What you want to know" },
		rounds = { type = "integer", default = 15, min = 1, max = 50, help = "How often it may use tools" },
	},
	permissions = { llm = true, files = true },
	budget = { calls = 60 },
	collections = {
		notes = { path = "notes/{name}.md", format = "text", schema = { type = "string", minLength = 1 } },
	},
	commands = {
		notes = {
			summary = "Lists what was kept",
			reads_only = true,
			run = function()
				for _, entry in notes:list() do
					ui.say(if entry.error then entry.error.message else `**{entry.key.name}**: {entry.value}`)
				end
			end,
		},
	},
	run = function(ctx)
		local seen: { [string]: boolean } = {}
		local reply = llm.chat {
			label = "Reading",
			system = template.render("./NAME/prompts/system.md"),
			prompt = ctx.params.question,
			tools = tools(seen),
			tool_choice = "required",
			rounds = ctx.params.rounds,
			schema = ANSWER,
			check = function(value)
				return unread(value.claims, seen)
			end,
		}
		ui.say(template.render("./NAME/prompts/answer.md", reply.value))
		nietz.verdict(#reply.value.claims > 0, "nothing that was read answers it")
		return reply.value
	end,
}
