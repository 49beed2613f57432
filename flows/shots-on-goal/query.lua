--!strict
--- Questions in SQL to a session's tables, answered as a table, JSON or CSV.

local documents = require("@nietz/documents")
local json = require("@nietz/json")
local nietz = require("@nietz")
local record = require("./record")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local query = {}

--- The widest column of a table.
local WIDEST = 60

local function shown(value: any): string
	if value == json.null then
		return ""
	elseif type(value) == "number" and value % 1 == 0 then
		return string.format("%d", value)
	end
	return tostring(value)
end

local function as_table(answer: any): string
	local lines: { { string } } = { answer.columns }
	for _, row in answer.rows do
		local cells = {}
		for _, value in row do
			table.insert(cells, text.truncate((string.gsub(shown(value), "%c", " ")), WIDEST))
		end
		table.insert(lines, cells)
	end
	local widths = {}
	for _, cells in lines do
		for column, cell in cells do
			widths[column] = math.max(widths[column] or 1, text.width(cell))
		end
	end
	local out = {}
	for index, cells in lines do
		local parts = {}
		for column, cell in cells do
			table.insert(parts, cell .. string.rep(" ", widths[column] - text.width(cell)))
		end
		table.insert(out, text.trim("|" .. table.concat(parts, "  ")):sub(2))
		if index == 1 then
			local rule = {}
			for _, width in widths do
				table.insert(rule, string.rep("-", width))
			end
			table.insert(out, table.concat(rule, "  "))
		end
	end
	return table.concat(out, "\n")
end

local function as_csv(answer: any): string
	local function line(values: { any }): string
		local cells = {}
		for _, value in values do
			local cell = shown(value)
			if string.find(cell, '[",\r\n]') then
				cell = '"' .. string.gsub(cell, '"', '""') .. '"'
			end
			table.insert(cells, cell)
		end
		return table.concat(cells, ",")
	end
	local lines = { line(answer.columns) }
	for _, row in answer.rows do
		table.insert(lines, line(row))
	end
	return table.concat(lines, "\n")
end

local function objects(answer: any): { any }
	local list = json.array({})
	for _, row in answer.rows do
		local object = {}
		for column, name in answer.columns do
			object[name] = row[column]
		end
		table.insert(list, object)
	end
	return list
end

--- Returns a value of the command line as what it looks like: a number, or a text.
local function value(word: string): any
	local number = tonumber(word)
	return if number ~= nil and tostring(number) == word then number else word
end

query.PARAMS = {
	sql = { type = "string", positional = true, required = true, help = "One SELECT" },
	session = { type = "string", help = "The session to ask [default: the latest]" },
	bind = { type = "string", many = true, help = "A value for a `?`, once for each, in their order" },
	format = { type = "string", choices = { "table", "json", "csv" }, default = "table", help = "How to answer" },
} :: { [string]: any }

function query.run(ctx: nietz.Context): any
	local session = record.find(ctx.params.session)
	if session == nil and ctx.params.session ~= nil then
		nietz.fail(`there is no session {ctx.params.session}`, "nietz run shots-on-goal --list")
	end
	local bind = {}
	for _, word in ctx.params.bind do
		table.insert(bind, value(word))
	end
	-- Where there is no session yet, all tables are there and empty.
	local answer = documents.query(ctx.params.sql, { key = { session = session or "none" }, bind = bind })
	if ctx.params.format == "json" then
		ui.say("```\n" .. json.encode(objects(answer), { pretty = true }) .. "\n```")
	else
		ui.say("```\n" .. (if ctx.params.format == "csv" then as_csv(answer) else as_table(answer)) .. "\n```")
	end
	if answer.cut then
		ui.say("There is more: ask for less, with WHERE or LIMIT.")
	end
	return { columns = answer.columns, rows = answer.rows, session = session }
end

return query
