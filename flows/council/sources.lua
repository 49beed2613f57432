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

local function is_point(self: app.App, id: string): boolean
	for _, point in self.points do
		if point.id == id then
			return true
		end
	end
	return false
end

--- Returns what is wrong with ids, or nil: they exist, and one at least is a point's.
function sources.fault(self: app.App, field: string, ids: { string }): string?
	local count = 0
	for _, id in ids do
		local number = tonumber(string.match(id, "^U(%d+)$") or "")
		if is_point(self, id) then
			count += 1
		elseif number == nil or ledger.find(self.book, number) == nil then
			return `{field}: nothing has the id {id}`
		end
	end
	return if count == 0 then `{field}: name at least one point (P) that the line rests on` else nil
end

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

--- Returns a line of the answer with what it rests on.
function sources.point(self: app.App, text: string, ids: { string }): Point
	local facts: { number } = {}
	for _, id in ids do
		local number = tonumber(string.match(id, "^U(%d+)$") or "")
		if number ~= nil and table.find(facts, number) == nil then
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
		text = text,
		from = sources.of(self, ids),
		facts = if #facts > 0 then json.array(facts) else nil,
		cites = if #cites > 0 then json.array(cites) else nil,
	}
end

return sources
