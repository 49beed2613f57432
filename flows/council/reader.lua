--!strict
--- The first reader of a memo: reads it before it goes out as the person who asked will, and says where they would stumble, and which of
--- their words that bear on the decision they would miss. Only answers of large minds have one.

local app = require("./app")
local document = require("../common/document")
local draft = require("./draft")
local mend = require("./mend")
local shape = require("../common/shape")

local reader = {}

--- The most places and the most words of the user's that are told.
local MOST, MOST_MISSED = 6, 24

--- What a reader says.
export type Read = { stumbles: { mend.Stumble }, missed: { document.Source } }

--- Returns what the first reader of a memo says; nothing where no reply can be used.
function reader.read(self: app.App, memo: draft.Memo): Read
	local untold = draft.untold(self, memo)
	local names: { string }, lines: { app.Values } = {}, {}
	for index, one in untold do
		-- What stands in the request has no number of its own.
		local name = if one.source.id ~= "" then one.source.id else `Q{index}`
		local is_told = table.find(names, name) ~= nil
		table.insert(names, name)
		if not is_told then
			local words = if one.source.id == "" or #one.lacks == 0 then one.source.words else ""
			table.insert(lines, { id = name, lacks = table.concat(one.lacks, ", "), words = words })
		end
	end
	local stumble = shape.object({ "words", "why" }, { words = shape.text(1, 200), why = shape.text(3, 400) })
	local value = app.ask_model(self, {
		prompt = "reader",
		vars = { untold = lines },
		schema = shape.object({ "misses", "stumbles" }, {
			misses = shape.list(shape.text(2, 6), 0, MOST_MISSED),
			stumbles = shape.list(stumble, 0, MOST),
		}),
		persona = self.moderator,
		label = self.t("label.reader"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	local found: Read = { stumbles = {}, missed = {} }
	for _, one in if value ~= nil then value.stumbles else {} do
		table.insert(found.stumbles, { words = app.to_line(one.words), why = app.to_line(one.why) })
	end
	for _, id in if value ~= nil then value.misses else {} do
		local at = table.find(names, id)
		local source = if at ~= nil then untold[at].source else draft.source(self, id)
		if source ~= nil and table.find(found.missed, source) == nil then
			table.insert(found.missed, source)
		end
	end
	return found
end

return reader
