--!strict
--- Facts from outside the conversation: what people do today, and what must be looked up. A model has no network here, so the
--- texts say that this comes from its memory and is to be checked.

local app = require("./app")
local context = require("./context")
local session = require("./session")
local shape = require("../common/shape")
local ui = require("@nietz/ui")

local outside_facts = {}

--- Asks for a list, shows it below a title, and keeps each item as a note of this kind.
local function ask_for_list(
	self: app.App,
	kind: string,
	name: string,
	properties: { [string]: shape.Shape },
	describe: (item: { [string]: string }) -> string
)
	local value = app.ask_model(
		self,
		{ prompt = kind, plain = true, role = "examiner", vars = context.prompt_vars(self), schema = shape.list_of(name, 1, 4, properties) }
	)
	if value == nil then
		return
	end
	local lines: { string } = { self.t(`{kind}.title`), "" }
	for _, item in value[name] do
		local said = describe(item)
		table.insert(lines, `- {said}`)
		session.add_note(self.doc, said, kind)
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
end

--- `--competitive`: what people do today instead, what that does well and where it fails. One of the first questions is
--- about the latter; more than that would lead a small model away from the subject.
function outside_facts.list_rivals(self: app.App)
	local weak_points: { string } = {}
	ask_for_list(
		self,
		"rivals",
		"rivals",
		{ name = shape.text(3, 60), strength = shape.text(3, 120), weak_point = shape.text(3, 120) },
		function(item: { [string]: string }): string
			local weak_point = app.to_line(item.weak_point, 120)
			table.insert(weak_points, weak_point)
			return self.t("rivals.row", {
				name = app.to_line(item.name, 60),
				strength = app.to_line(item.strength, 120),
				weak_point = weak_point,
			})
		end
	)
	self.weak_point = weak_points[1]
end

--- `--c7`: which facts the decisions rest on that must be looked up in documentation.
function outside_facts.list_lookups(self: app.App)
	ask_for_list(
		self,
		"lookups",
		"lookups",
		{ question = shape.text(3, 140), where = shape.text(3, 80) },
		function(item: { [string]: string }): string
			return self.t("lookups.row", { where = app.to_line(item.where, 80), question = app.to_line(item.question, 140) })
		end
	)
end

return outside_facts
