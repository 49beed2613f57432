--!strict
--- What the answer rests on: ids of points become who said them and in which turn, ids of what the user said become those
--- entries, and lines of files that are cited are kept.

local app = require("./app")
local cited = require("../common/cited")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local look = require("../common/look")
local session = require("./session")

local sources = {}

export type From = session.From
export type Point = session.Point

--- Returns who said these points, each turn once.
function sources.of(self: app.App, ids: { string }): { From }
	local found: { From } = json.array({} :: { From })
	for _, id in ids do
		for _, point in self.points do
			local twice = false
			for _, other in found do
				twice = twice or other.turnId == point.turnId
			end
			if point.id == id and not twice then
				table.insert(found, { name = point.by, turnId = point.turnId })
			end
		end
	end
	return found
end

--- Returns a text without ids that a model put into it, in brackets.
local function without_ids(line: string): string
	return (string.gsub(line, "%s*[%(%[][PU]%d+[PU%d,;%sand]*[%)%]]", ""))
end

--- Returns a line of the answer with what it rests on; ids that nobody has are passed over.
function sources.point(self: app.App, text: string, ids: { string }): Point
	local facts: { number } = {}
	for _, id in ids do
		local number = tonumber(string.match(id, "^U(%d+)$") or "")
		if number ~= nil and ledger.find(self.book, number) ~= nil and table.find(facts, number) == nil then
			table.insert(facts, number)
		end
	end
	local cites = cited.places(text, self.files :: { any })
	for _, place in cited.places(text, look.places(self.shown)) do
		if table.find(cites, place) == nil then
			table.insert(cites, place)
		end
	end
	return {
		text = without_ids(text),
		from = sources.of(self, ids),
		facts = if #facts > 0 then json.array(facts) else nil,
		cites = if #cites > 0 then json.array(cites) else nil,
	}
end

return sources
