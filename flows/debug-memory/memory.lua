--!strict
--- The memory files: written while a session goes on, archived when their days are over. A session goes on where they
--- cannot be: what it could not keep is said.

local best_effort = require("../common/best_effort")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local list = require("../common/list")
local recall = require("../common/memory/recall")
local spec = require("../common/memory/spec")
local state = require("./state")

local memory = {}

local DAY = 86400

--- Returns a new session's document.
function memory.new(id: string, file: string?, run: string, model: string): documents.Document
	local now = clock.now()
	return {
		session_id = id,
		file_path = file or "unknown",
		created_at = now,
		updated_at = now,
		status = "in_progress",
		executions = json.array({}),
		metadata = { agent = model, task_id = run },
	}
end

--- Keeps the session as it is now. Each save is the whole of it, so the next one makes up for one that failed.
function memory.save(self: state.Session)
	self.doc.updated_at = clock.now()
	best_effort.run("", function(why: string): string
		return `This session goes on, and is not in the debug memory: {why}`
	end, function(): string
		return documents.collection("debug_memory"):save(self.doc)
	end)
end

--- Returns a session, from the archive if need be; nil where there is none.
function memory.load(id: string): documents.Document?
	return documents.collection("debug_memory"):load(id) or documents.collection("debug_memory_archive"):load(id)
end

--- Moves sessions to the archive; returns how many were there.
function memory.archive(ids: { string }): number
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

--- Returns the sessions whose days are over.
local function over(): { string }
	local now = clock.unix()
	local function ago(days: number): string
		return clock.format(now - days * DAY)
	end
	local rows = recall.query(
		[[SELECT s.session_id FROM debug_memory s WHERE s.updated_at IS NOT NULL AND s.updated_at < CASE
		WHEN s.status = 'escalated' THEN ?
		WHEN EXISTS (SELECT 1 FROM debug_patterns p WHERE p.document = s.document) THEN ?
		ELSE ? END ORDER BY s.updated_at]],
		{ ago(spec.retention.on_escalation), ago(spec.retention.on_learning_identified), ago(spec.retention.default_days) }
	)
	return list.map(rows, function(row): string
		return row.session_id
	end)
end

--- Archives what is older than the schema's days: those with a pattern are kept longer, those that were escalated
--- longest. Returns how many. What cannot be moved stays, and is said.
function memory.retain(): number
	local function stays(why: string): string
		return `Old sessions stay where they are in the debug memory: {why}`
	end
	local moved = 0
	for _, id in best_effort.run({} :: { string }, stays, over) do
		moved += best_effort.run(0, stays, function(): number
			return memory.archive({ id })
		end)
	end
	return moved
end

return memory
