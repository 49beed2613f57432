--!strict
--- The end of an iteration: what the user said is taken down and weighed, and both are shown. A model claims scores with evidence,
--- and `ems.lua` decides what they are worth.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local notebook = require("./notebook")
local noting = require("./noting")
local noting_small = require("./noting_small")
local session = require("./session")
local ui = require("@nietz/ui")

local scoring = {}

--- Returns what the user said in the open iteration: answers, and notes that they added.
function scoring.said_in_iteration(self: app.App): string
	local lines: { string } = { session.current_answers(self.doc) }
	for _, note in session.notes(self.doc, { "user" }) do
		if note.iteration == self.doc.session.iteration then
			table.insert(lines, note.text)
		end
	end
	return table.concat(lines, "\n")
end

--- Shows the EMS as bars, with what changed since `before`.
function scoring.show_ems(self: app.App, before: ems.Axes?)
	local s = self.doc.session
	local old = if before then ems.combine(before) else s.ems
	local title = self.t("ems.title", {
		ems = s.ems,
		delta = ems.with_sign(s.ems - old),
		level = self.t(`levels.{ems.level(s.ems)}`),
		iteration = s.iteration,
	})
	if not self.options.chart then
		ui.say(title)
		return
	end
	ui.say(`**{title}**\n\n\`\`\`text\n{ems.chart(self.doc.nietz.axes, before, context.axis_labels(self))}\n\`\`\``)
end

local function advise(self: app.App)
	local s = self.doc.session
	local weak = ems.weak_axes(self.doc.nietz.axes, s.phase)
	local advice = ems.advice(s.ems, weak)
	if s.ems >= self.options.checkpoint and (self.doc.nietz.checkpoint or 0) == 0 then
		-- The checkpoint that comes next says it.
		return
	end
	local axis = weak[1] or "clarity"
	ui.say(self.t(`ems.advice.{advice}`, { axis = self.t(`axes.{axis}`) }))
end

--- Shows what came of a turn: what was taken down, one line each, and where the session stands.
function scoring.show(self: app.App, noted: noting.Noted, before: ems.Axes)
	notebook.show(self, noted.change)
	scoring.show_ems(self, before)
	local names: { string } = {}
	for _, axis in ems.AXES do
		if noted.held[axis.key] == "evidence" then
			table.insert(names, self.t(`axes.{axis.key}`))
		end
	end
	if #names > 0 and self.options.chart then
		ui.say(self.t("ems.held", { axes = table.concat(names, ", ") }))
	end
	for _, axis in ems.AXES do
		local evidence = (self.doc.nietz.evidence or {})[axis.key]
		if self.options.chart and evidence ~= nil and (self.doc.nietz.axes[axis.key] or 0) < (before[axis.key] or 0) then
			ui.say(self.t("ems.fell", { evidence = evidence, axis = self.t(`axes.{axis.key}`) }))
		end
	end
	if self.options.suggest then
		advise(self)
	end
end

--- Takes down and weighs the open iteration. A light session with a large mind does so together with its next questions.
function scoring.run(self: app.App)
	local s = self.doc.session
	local before = table.clone(self.doc.nietz.axes)
	self.doc.nietz.scored = s.iteration
	if string.find(noting.text_of(noting.unread(self.doc)), "[%w\128-\255]") == nil then
		ui.say(self.t("ems.said_nothing"))
		return
	elseif app.is_light(self) then
		return
	end
	local noted = if self.mind == "small" then noting_small.run(self) else noting.run(self, { weigh = true })
	scoring.show(self, noted, before)
end

return scoring
