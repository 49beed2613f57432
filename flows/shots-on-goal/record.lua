--!strict
--- The record of a session: appends rows to its tables and reads them. Each row gets the next id of its table and the time of its
--- event, and refers only to rows that exist.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local tables = require("./tables")

local record = {}

export type Row = documents.Document

export type Record = {
	--- The session's folder.
	key: { [string]: string },
	--- How many ids of each table are taken, which is also the last id.
	count: { [string]: number },
	--- The attempts that have a result.
	results: { [number]: boolean },
}

--- Returns the record of a new session, without rows.
function record.new(session: string): Record
	local count = {}
	for _, name in tables.NAMES do
		count[name] = 0
	end
	return { key = { session = session }, count = count, results = {} }
end

--- Returns the time as rows have it, in milliseconds: for an event whose row can only be written later.
function record.now(): string
	local milliseconds = math.round(clock.unix() * 1000)
	local seconds = milliseconds // 1000
	return clock.format(seconds, "%Y-%m-%dT%H:%M:%S") .. string.format(".%03dZ", milliseconds - seconds * 1000)
end

--- Takes the next id of a table, for a row whose id has to be known before the row can be written.
function record.reserve(self: Record, name: string): number
	self.count[name] += 1
	return self.count[name]
end

--- Appends a row and returns its id. Columns that are not given are null; `id` is one that was reserved, and `timestamp` that of an
--- event which is over. An attempt has one result: a second one is refused.
function record.add(self: Record, name: string, fields: Row): number
	local row: Row = table.clone(fields)
	for column, to in tables.references[name] do
		local value = row[column]
		if value ~= nil and (value < 1 or value > self.count[to]) then
			error(`{name}.{column} is {value}, and {to} has {self.count[to]} rows`)
		end
	end
	if name == "attempt_result" then
		if self.results[row.attempt_id] then
			error(`attempt {row.attempt_id} has a result already`)
		end
		self.results[row.attempt_id] = true
	end
	-- Taken before the first wait, so that attempts side by side never get the same id.
	local id = row.id or record.reserve(self, name)
	row.id = id
	row.timestamp = row.timestamp or record.now()
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
