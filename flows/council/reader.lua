--!strict
--- The first reader of an answer: reads it before it goes out as the person who asked will, and says where they would stumble. Only
--- answers of large minds have one.

local app = require("./app")
local mend = require("./mend")
local shape = require("../common/shape")

local reader = {}

--- The most places that are told.
local MOST = 6

--- Returns where a reader of an answer with these sections would stumble, worst first; nothing where no reply can be used.
function reader.read(self: app.App, sections: { string }): { mend.Stumble }
	local stumble = shape.object(
		{ "section", "words", "why" },
		{ section = { enum = sections }, words = shape.text(1, 160), why = shape.text(3, 400) }
	)
	local value = app.ask_model(self, {
		prompt = "reader",
		vars = {},
		schema = shape.object({ "stumbles" }, { stumbles = shape.list(stumble, 0, MOST) }),
		persona = self.moderator,
		label = self.t("label.reader"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	local found: { mend.Stumble } = {}
	for _, one in if value ~= nil then value.stumbles else {} do
		table.insert(found, { section = one.section, words = app.to_line(one.words), why = app.to_line(one.why) })
	end
	return found
end

return reader
