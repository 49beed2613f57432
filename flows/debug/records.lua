--!strict
--- The commands about past sessions: `list`, `show` and `export`. They only look.

local documents = require("@nietz/documents")
local export = require("./export")
local json = require("@nietz/json")
local lang = require("./lang")
local list = require("../common/list")
local nietz = require("@nietz")
local period = require("./period")
local query_output = require("../common/query_output")
local session = require("./session")
local session_files = require("./session_files")
local spec = require("../common/memory/spec")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local vocabulary = require("./vocabulary")

local records = {}

records.ALL = {} :: { [string]: nietz.Command }

local sessions = documents.collection("sessions")

--- How wide a line of the list is at most, and what of that the problem gets at least; two spaces part columns.
local WIDEST_LINE, LEAST_OF_PROBLEM, BETWEEN = 100, 20, 2
--- How many sessions are named where several may be meant.
local MOST_NAMED = 5

local LIST_PARAMS: { [string]: nietz.Param } = {
	outcome = { type = "string", choices = { "solved", "abandoned", "open" }, help = "Only sessions that ended so" },
	tag = { type = "string", choices = vocabulary.names(), help = "Only sessions in which this was seen" },
	kind = { type = "string", choices = spec.error_types, help = "Only sessions about such an error, by the words of the problem" },
	voice = { type = "string", help = "Only sessions in which this voice asked" },
	format = { type = "string", choices = { "table", "json", "csv" }, default = "table", help = "How to answer" },
}
for name, param in period.PARAMS do
	LIST_PARAMS[name] = param
end

local ID: nietz.Param =
	{ type = "string", positional = true, order = 1, help = "The session, by the beginning of its id [default: the latest]" }

--- Returns the session that these letters begin, or the latest.
local function find(prefix: string?): session.Doc
	local matching: { session_files.Parts } = {}
	local latest: session_files.Parts? = nil
	local latest_at = 0
	local ids: { string } = {}
	session_files.each({}, function(found, at)
		if latest == nil or at > latest_at or at == latest_at and found.id > latest.id then
			latest, latest_at = found, at
		end
		table.insert(ids, string.sub(found.id, 1, 8))
		if prefix ~= nil and string.find(string.lower(found.id), string.lower(prefix), 1, true) == 1 then
			table.insert(matching, found)
		end
	end)
	if latest == nil then
		return nietz.usage("there is no session here", 'nietz run debug "what goes wrong" begins one')
	end
	if #matching > 1 then
		local named = {}
		for index = 1, math.min(#matching, MOST_NAMED) do
			table.insert(named, `{matching[index].id} ({text.truncate(matching[index].problem, 40)})`)
		end
		return nietz.usage(`{#matching} sessions begin with "{prefix}"`, `give more of it: {table.concat(named, ", ")}`)
	end
	local one = if prefix == nil then latest else matching[1]
	if one == nil then
		local near = text.nearest(string.sub(prefix or "", 1, 8), ids)
		local hint = if near then `did you mean {near}? ` else ""
		return nietz.usage(`no session begins with "{prefix}"`, hint .. "`nietz run debug list` names them")
	end
	return sessions:load(one.id)
end

--- Returns rows as a table shows them: of a long problem, what the line has room for.
local function within_a_line(rows: { { any } }): { { any } }
	local last = #export.COLUMNS
	local room = WIDEST_LINE
	for column = 1, last - 1 do
		local width = text.width(export.COLUMNS[column])
		for _, row in rows do
			width = math.max(width, text.width(tostring(row[column])))
		end
		room -= width + BETWEEN
	end
	return list.map(rows, function(row): { any }
		local cut = table.clone(row)
		cut[last] = text.truncate(row[last], math.max(room, LEAST_OF_PROBLEM))
		return cut
	end)
end

records.ALL.list = {
	summary = "Lists past sessions, the latest first",
	reads_only = true,
	params = LIST_PARAMS,
	run = function(ctx: nietz.Context)
		local found: { { at: number, row: { any } } } = {}
		local left = session_files.each(ctx.params :: any, function(one, at)
			table.insert(found, { at = at, row = export.row(one) })
		end)
		table.sort(found, function(one, other): boolean
			return if one.at == other.at then one.row[1] < other.row[1] else one.at > other.at
		end)
		local rows: { { any } } = json.array({})
		for _, one in found do
			table.insert(rows, one.row)
		end
		if #rows == 0 and ctx.params.format == "table" then
			ui.say(lang.translator(lang.code(ctx.lang))("list.none"))
		else
			local shown = if ctx.params.format == "table" then within_a_line(rows) else rows
			query_output.show({ columns = export.COLUMNS, rows = shown, cut = false, broken = left.broken }, ctx.params.format)
		end
		return { columns = export.COLUMNS, rows = rows }
	end,
}

records.ALL.show = {
	summary = "Shows a session: all that was asked and said",
	reads_only = true,
	params = { session = ID },
	run = function(ctx: nietz.Context)
		local doc, code = find(ctx.params.session), lang.code(ctx.lang)
		ui.say(export.markdown(doc, "notes", code, lang.translator(code)))
		return { id = doc.id, outcome = doc.outcome }
	end,
}

records.ALL.export = {
	summary = "Writes a session for others to read, as Markdown or JSON",
	reads_only = true,
	params = {
		session = ID,
		format = {
			type = "string",
			choices = { "issue", "postmortem", "notes", "json" },
			default = "issue",
			help = "What it is to be",
		} :: nietz.Param,
	},
	run = function(ctx: nietz.Context)
		local doc, code = find(ctx.params.session), lang.code(ctx.lang)
		if ctx.params.format == "json" then
			ui.say("```\n" .. json.encode(doc, { pretty = true }) .. "\n```")
		else
			ui.say(export.markdown(doc, ctx.params.format, code, lang.translator(code)))
		end
		return { id = doc.id, format = ctx.params.format }
	end,
}

return records
