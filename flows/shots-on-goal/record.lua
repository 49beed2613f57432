--!strict
--- The record of a session: appends rows to its tables and reads them. Each row gets the next id of its table and the time, and
--- refers only to rows that exist.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local tables = require("./tables")

local record = {}

export type Row = documents.Document

export type Record = {
	--- The session's folder.
	key: { [string]: string },
	--- How many rows each table has, which is also the last id.
	count: { [string]: number },
}

--- Returns the record of a new session, without rows.
function record.new(session: string): Record
	local count = {}
	for _, name in tables.NAMES do
		count[name] = 0
	end
	return { key = { session = session }, count = count }
end

--- Appends a row and returns its id. Columns that are not given are null.
function record.add(self: Record, name: string, fields: Row): number
	local id = self.count[name] + 1
	local row: Row = table.clone(fields)
	for column, to in tables.references[name] do
		local value = row[column]
		if value ~= nil and (value < 1 or value > self.count[to]) then
			error(`{name}.{column} is {value}, and {to} has {self.count[to]} rows`)
		end
	end
	-- Taken before the first wait, so that attempts side by side never get the same id.
	self.count[name] = id
	row.id = id
	row.timestamp = clock.now()
	for _, column in tables.columns[name] do
		if row[column] == nil then
			row[column] = json.null
		end
	end
	documents.collection(name):append(row, self.key)
	return id
end

--- Returns all rows of a table of some session.
function record.rows(session: string, name: string): { Row }
	return documents.collection(name):rows({ session = session })
end

--- Returns the sessions of this workspace, oldest first: `{ session, row }`.
function record.sessions(): { { session: string, row: Row } }
	local found: { { session: string, row: Row } } = {}
	for _, entry in documents.collection("session"):list() do
		if entry.value ~= nil and entry.value[1] ~= nil then
			table.insert(found, { session = entry.key.session, row = entry.value[1] })
		end
	end
	table.sort(found, function(a, b)
		return if a.row.timestamp == b.row.timestamp then a.session < b.session else a.row.timestamp < b.row.timestamp
	end)
	return found
end

--- Returns the session of this name, or the latest without a name; nil where there is none.
function record.find(wanted: string?): string?
	local sessions = record.sessions()
	if wanted == nil then
		return if #sessions > 0 then sessions[#sessions].session else nil
	end
	for _, found in sessions do
		if found.session == wanted then
			return wanted
		end
	end
	return nil
end

return record
