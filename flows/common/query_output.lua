--!strict
--- Shows the answer of a query as a table, JSON or CSV: the same for every mode that has a `query` command.

local documents = require("@nietz/documents")
local fenced = require("./fenced")
local json = require("@nietz/json")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local query_output = {}

--- The widest column of a table.
local WIDEST = 60

local function cell_text(value: unknown): string
	if value == json.null then
		return ""
	elseif type(value) == "number" and value % 1 == 0 then
		return string.format("%d", value)
	end
	return tostring(value)
end

local function format_table(answer: documents.Answer): string
	local lines: { { string } } = { answer.columns }
	for _, row in answer.rows do
		local cells = {}
		for _, value in row do
			table.insert(cells, text.truncate((string.gsub(cell_text(value), "%c", " ")), WIDEST))
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

local function format_csv(answer: documents.Answer): string
	local function line(values: { unknown }): string
		local cells = {}
		for _, value in values do
			local cell = cell_text(value)
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

local function rows_as_objects(answer: documents.Answer): { documents.Document }
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

--- Shows which files were left out of an answer.
local function show_left_out(answer: documents.Answer)
	for _, broken in answer.broken or {} :: { { path: string, message: string } } do
		ui.say(`Left out: {broken.message}`)
	end
end

--- Shows an answer of `documents.query` as a `table`, `json` or `csv`.
function query_output.show(answer: documents.Answer, format: string)
	if #answer.rows == 0 and format == "table" then
		ui.say("Nothing fits: there is no row.")
		show_left_out(answer)
		return
	end
	local shape = { table = format_table, csv = format_csv } :: { [string]: (answer: documents.Answer) -> string }
	local said = if format == "json" then json.encode(rows_as_objects(answer), { pretty = true }) else shape[format](answer)
	ui.say(fenced.block(said))
	if answer.cut then
		ui.say("There is more: ask for less.")
	end
	show_left_out(answer)
end

return query_output
