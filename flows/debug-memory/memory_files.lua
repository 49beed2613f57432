--!strict
--- The files of the debug memory: written while a session runs, archived when they are old. Where that fails, the session goes
--- on, and says what it could not keep.

local best_effort = require("../common/best_effort")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local entries = require("../common/memory/entries")
local list = require("../common/list")
local recall = require("../common/memory/recall")
local spec = require("../common/memory/spec")
local state = require("./state")

local memory_files = {}

local DAY = 86400

--- Returns a new session's document.
function memory_files.new(id: string, file: string?, run: string, model: string): documents.Document
	return entries.new(id, file, run, model, "debug-memory")
end

--- Saves the session as it is now.
function memory_files.save(self: state.Session)
	entries.save(self.doc, function(why: string): string
		return `This session goes on, and is not in the debug memory: {why}`
	end)
end

--- Returns a session, also from the archive; nil where there is none.
function memory_files.load(id: string): documents.Document?
	return documents.collection("debug_memory"):load(id) or documents.collection("debug_memory_archive"):load(id)
end

--- Moves sessions to the archive; returns how many were moved.
function memory_files.archive(ids: { string }): number
	local sessions, archive = documents.collection("debug_memory"), documents.collection("debug_memory_archive")
	local moved = 0
	for _, id in ids do
		local doc = sessions:load(id)
		if doc ~= nil then
			archive:save(doc, { overwrite = true })
			sessions:delete(id)
			moved += 1
		end
	end
	return moved
end

--- Returns the ids of the sessions that have been kept long enough.
local function expired_sessions(): { string }
	local now = clock.unix()
	local function ago(days: number): string
		return clock.format(now - days * DAY)
	end
	local rows = recall.query(
		-- Not every program tells when it last changed a session; its last run of the tests does.
		[[SELECT session_id FROM (SELECT s.*, coalesce(s.updated_at, (SELECT max(e.timestamp) FROM debug_executions e
		WHERE e.document = s.document), s.created_at) AS changed FROM debug_memory s) s WHERE changed < CASE
		WHEN s.status = 'escalated' THEN ?
		WHEN EXISTS (SELECT 1 FROM debug_patterns p WHERE p.document = s.document) THEN ?
		ELSE ? END ORDER BY changed]],
		{ ago(spec.retention.on_escalation), ago(spec.retention.on_learning_identified), ago(spec.retention.default_days) }
	)
	return list.map(rows, function(row): string
		return row.session_id
	end)
end

--- Archives the sessions that are older than the schema's days of retention, and returns how many. One that cannot be moved
--- stays, and that is said.
function memory_files.archive_expired(): number
	local function stays(why: string): string
		return `Old sessions stay where they are in the debug memory: {why}`
	end
	local moved = 0
	for _, id in best_effort.run({} :: { string }, stays, expired_sessions) do
		moved += best_effort.run(0, stays, function(): number
			return memory_files.archive({ id })
		end)
	end
	return moved
end

return memory_files
