--!strict
--- The tables of a session: one collection of rows each, in a folder for the session. The first twelve are those of the
--- specification; the others hold ends and usage, so that no row is ever changed.

local json = require("@nietz/json")
local nietz = require("@nietz")

local tables = {}

--- In the order in which their rows refer to each other.
tables.NAMES = {
	"session",
	"tool",
	"goal",
	"validation_step",
	"branch",
	"worktree",
	"attempt",
	"attempt_tool",
	"attempt_result",
	"tool_call",
	"validation_run",
	"merge",
	"session_end",
	"worktree_end",
	"breakdown_response",
	"merge_conflict",
	"goal_end",
	"attempt_usage",
}

--- By table and column: the table whose ids stand in that column.
tables.references = {} :: { [string]: { [string]: string } }

--- By table: its columns.
tables.columns = {} :: { [string]: { string } }

--- By table with an `order`: the columns that have the same values in rows which are ordered among each other.
local ORDERED: { [string]: { string } } = {
	goal = { "/session_id", "/parent_goal_id" },
	validation_step = { "/goal_id" },
	tool_call = { "/attempt_id" },
}

--- The tables whose rows are written behind others that began later: attempts side by side, whose ids are taken when they begin,
--- and results, which have the time at which the model ended and are written when the work was judged.
local LATE: { [string]: boolean } = { attempt = true, attempt_result = true }

--- Returns what is expected of rows: ids and orders count from 1, and times never go back along rows and references.
local function expects(name: string): { nietz.Expectation }
	local list: { nietz.Expectation } = { { numbered = "/id" }, { follows = "/timestamp" } }
	if name == "validation_run" then
		-- They are written together when the result that they belong to is there.
		table.insert(list, { rising = "/id" })
		table.insert(list, { rising = "/timestamp", within = { "/attempt_result_id" } })
	elseif not LATE[name] then
		table.insert(list, { rising = "/id" })
		table.insert(list, { rising = "/timestamp" })
	end
	if ORDERED[name] ~= nil then
		table.insert(list, { numbered = "/order", within = ORDERED[name] })
	end
	return list
end

--- The collections, for the manifest.
tables.collections = {} :: { [string]: nietz.Collection }

for _, name in tables.NAMES do
	local schema = json.load(`./schema/{name}.schema.json`)
	local references = {}
	for column, definition in schema.properties do
		if definition.references ~= nil then
			references[column] = definition.references
		end
	end
	tables.references[name] = references
	tables.columns[name] = schema.required
	tables.collections[name] = {
		path = `.nietz/shots-on-goal/\{session}/{name}.jsonl`,
		schema = `./shots-on-goal/schema/{name}.schema.json`,
		expects = expects(name),
	}
end

return tables
