--!strict
--- The command `query`: SQL over the tables of a session.

local documents = require("@nietz/documents")
local nietz = require("@nietz")
local query_output = require("../common/query_output")
local record = require("./record")

local query = {}

--- Returns a value of the command line as a number where it looks like one, else as a text.
local function parse_value(word: string): any
	local number = tonumber(word)
	return if number ~= nil and tostring(number) == word then number else word
end

query.PARAMS = {
	sql = { type = "string", positional = true, required = true, help = "One SELECT" },
	session = { type = "string", help = "The session to ask [default: the latest]" },
	bind = { type = "string", many = true, default = {}, help = "A value for a `?`, once for each, in their order" },
	format = { type = "string", choices = { "table", "json", "csv" }, default = "table", help = "How to answer" },
} :: { [string]: nietz.Param }

function query.run(ctx: nietz.Context)
	local session = record.find(ctx.params.session)
	if session == nil and ctx.params.session ~= nil then
		nietz.fail(`there is no session {ctx.params.session}`, "nietz run shots-on-goal --list")
	end
	local bind = {}
	for _, word in ctx.params.bind do
		table.insert(bind, parse_value(word))
	end
	-- Where there is no session yet, all tables are there and empty.
	local answer = documents.query(ctx.params.sql, { key = { session = session or "none" }, bind = bind })
	query_output.show(answer, ctx.params.format)
	return { columns = answer.columns, rows = answer.rows, session = session }
end

return query
