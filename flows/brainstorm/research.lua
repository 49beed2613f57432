--!strict
--- What lies outside the conversation: what people do today, and what must be looked up. A model has no library and no
--- network here, so that all of this is said to come from its memory and is to be checked.

local app = require("./app")
local context = require("./context")
local session = require("./session")
local shape = require("../common/shape")
local ui = require("@nietz/ui")

local research = {}

--- Asks for a list, shows it below a title, and keeps each item as a note of this kind.
local function gather(self: app.App, kind: string, name: string, properties: { [string]: any }, put: (item: any) -> string)
	local value = app.think(self, { prompt = kind, plain = true, vars = context.of(self), schema = shape.list_of(name, 1, 4, properties) })
	if value == nil then
		return
	end
	local lines: { string } = { self.t(`{kind}.title`), "" }
	for _, item in value[name] do
		local said = put(item)
		table.insert(lines, `- {said}`)
		session.note(self.doc, "notes", said, kind)
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
end

--- `--competitive`: what people do today instead, what that does well and where it fails. One of the first questions is
--- about the latter; more than that would lead a small model away from the subject.
function research.rivals(self: app.App)
	local weak_points: { string } = {}
	gather(
		self,
		"rivals",
		"rivals",
		{ name = shape.text(3, 60), strength = shape.text(3, 120), weak_point = shape.text(3, 120) },
		function(item: any): string
			local weak_point = app.line(item.weak_point, 120)
			table.insert(weak_points, weak_point)
			return self.t("rivals.row", {
				name = app.line(item.name, 60),
				strength = app.line(item.strength, 120),
				weak_point = weak_point,
			})
		end
	)
	self.weak_point = weak_points[1]
end

--- `--c7`: which facts the decisions rest on that stand in somebody's documentation.
function research.lookups(self: app.App)
	gather(self, "lookups", "lookups", { question = shape.text(3, 140), where = shape.text(3, 80) }, function(item: any): string
		return self.t("lookups.row", { where = app.line(item.where, 80), question = app.line(item.question, 140) })
	end)
end

return research
