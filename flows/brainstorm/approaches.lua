--!strict
--- The command `approaches`: two or three ways to do it, side by side, with the one that is recommended. The user's choice is a
--- decision of theirs.

local app = require("./app")
local context = require("./context")
local dialogue = require("./dialogue")
local notebook = require("./notebook")
local noting = require("./noting")
local shape = require("../common/shape")
local ui = require("@nietz/ui")

local approaches = {}

--- Sets approaches side by side and asks for one.
function approaches.show(self: app.App): app.Signal?
	noting.catch_up(self)
	local line = shape.text(5)
	local value = app.ask_model(self, {
		prompt = "approaches",
		vars = if self.mind == "small" then context.prompt_vars(self) else {},
		schema = shape.object({ "approaches", "why", "recommended" }, {
			approaches = shape.list(shape.object({ "name", "how", "price" }, { name = line, how = line, price = line }), 2, 3),
			why = line,
			recommended = shape.integer(1, 3),
		}),
	})
	if value == nil then
		return nil
	end
	local best = math.clamp(value.recommended, 1, #value.approaches)
	local lines: { string } = {}
	local options: { dialogue.Option } = {}
	for index, one in value.approaches do
		one.recommended = index == best
		local mark = if index == best then ` · {self.t("approaches.recommended")}` else ""
		table.insert(
			lines,
			`- **{dialogue.letter(index)}** **{one.name}**{mark}: {one.how} {self.t("approaches.price", { price = one.price })}`
		)
		table.insert(options, { value = one.name, label = one.name })
	end
	table.insert(lines, "")
	table.insert(lines, value.why)
	ui.say(table.concat(lines, "\n"))
	self.doc.nietz.approaches = value.approaches
	app.save(self)
	local answer, signal = dialogue.ask(self, { id = "approach", prompt = self.t("approaches.ask"), options = options, several = true })
	if answer == nil then
		return signal
	elseif answer ~= "" then
		for _, one in value.approaches do
			one.recommended = false
			one.chosen = one.name == answer
		end
		local made = notebook.add(self.doc, "decision", answer)
		if made ~= nil then
			ui.say(self.t("ledger.added", { line = notebook.line(self, made) }))
		end
		app.save(self)
	end
	return nil
end

return approaches
