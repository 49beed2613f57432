--!strict
--- What each command does. Returns where it leads, or nil when the question that was open is simply asked again.

local app = require("./app")
local brief = require("./brief")
local context = require("./context")
local ems = require("./ems")
local examine = require("./examine")
local explore = require("./explore")
local launch = require("./launch")
local leader = require("./leader")
local panel = require("./panel")
local party = require("./party")
local scoring = require("./scoring")
local session = require("./session")
local stories = require("./stories")
local turning = require("./turning")
local ui = require("@nietz/ui")

local actions = {}

type Act = (self: app.App, argument: string) -> app.Signal?

--- Shows where the session jumped, as the specification's screen has it.
local function jumped(self: app.App, title: string, from: any)
	local t = self.t
	local s = self.doc.session
	local entry = session.current(self.doc)
	local lines: { string } = {
		t("rule"),
		title,
		"   " .. t("back.iteration", { from = from.iteration, to = s.iteration }),
		"   " .. t("back.ems", { from = from.ems, to = s.ems, delta = ems.signed(s.ems - from.ems) }),
		"   " .. t("back.phase", { from = from.phase, to = s.phase }),
		"",
		"   " .. t("back.restored", { iteration = s.iteration }),
	}
	for _, question in entry.questions do
		table.insert(lines, `   - {question}`)
	end
	table.insert(lines, t("rule"))
	ui.say("```text\n" .. table.concat(lines, "\n") .. "\n```")
	if session.has_ahead(self.doc) then
		ui.say(t("back.how"))
	end
end

local function back(self: app.App, argument: string): app.Signal?
	local steps = tonumber(argument) or 1
	local from, furthest = session.back(self.doc, steps)
	if from == nil then
		local s = self.doc.session
		ui.say(
			if furthest == 0
				then self.t("back.nowhere")
				else self.t("back.impossible", { steps = steps, iteration = s.iteration, most = furthest })
		)
		return nil
	end
	app.save(self)
	jumped(self, self.t("back.title", { steps = steps }), from)
	return { go = "jump" }
end

local function continue_(self: app.App): app.Signal?
	if not session.has_ahead(self.doc) then
		return { go = "next" }
	end
	local from = session.forward(self.doc)
	app.save(self)
	jumped(self, self.t("back.forward"), from)
	return { go = "jump" }
end

local function status(self: app.App): app.Signal?
	local t = self.t
	local s = self.doc.session
	local values: { number } = {}
	for _, entry in s.history do
		table.insert(values, entry.ems)
	end
	table.insert(values, s.ems)
	ui.say(t("status.title", {
		name = s.slug,
		phase = t(`phases.{s.phase}`),
		iteration = s.iteration,
		limit = self.switches.iterations,
		persona = app.leader(self).name,
		minutes = s.duration_minutes,
	}))
	scoring.show(self)
	local proofs: { string } = {}
	for _, axis in ems.AXES do
		local evidence = (s.flow_state.evidence or {})[axis.key]
		if evidence ~= nil then
			table.insert(proofs, `- {t(`axes.{axis.key}`)}: “{evidence}”`)
		end
	end
	if #proofs > 0 then
		ui.say(t("status.evidence") .. "\n\n" .. table.concat(proofs, "\n"))
	end
	local lines: { string } = { t("status.course", { line = `\`{ems.sparkline(values)}\`` }), "" }
	local function section(key: string, items: { any }, field: string)
		table.insert(lines, `**{t(key)}**`)
		table.insert(lines, "")
		for _, item in items do
			table.insert(lines, `- {item[field]}`)
		end
		if #items == 0 then
			table.insert(lines, t("status.nothing"))
		end
		table.insert(lines, "")
	end
	section("status.ideas", context.ideas(self), "content")
	section("status.decisions", s.flow_state.decisions, "text")
	section("status.risks", s.flow_state.risks, "risk")
	ui.say(table.concat(lines, "\n"))
	return nil
end

local function ranking(self: app.App): app.Signal?
	local ideas = context.ideas(self)
	local lines: { string } = {}
	for _, idea in ideas do
		table.insert(lines, `- **{idea.score}/10** {idea.content}`)
	end
	ui.say(if #lines == 0 then self.t("status.nothing") else table.concat(lines, "\n"))
	return nil
end

local function phase(name: string): Act
	return function(self: app.App): app.Signal?
		self.doc.session.phase = name
		if name == "divergent" then
			-- Asked for by the user: half-way is not announced a second time.
			self.doc.session.flow_state.crossed = true
		end
		app.save(self)
		return { go = "again" }
	end
end

local function plan(self: app.App): app.Signal?
	local list = stories.of(self, "")
	local lines: { string } = { self.t("plan.title", { size = stories.size(list) }), "" }
	for _, story in list do
		local row = self.t("plan.row", story)
		table.insert(lines, if story.iteration > 0 then `{row} {self.t("brief.trace", story)}` else row)
	end
	ui.say(table.concat(lines, "\n"))
	return nil
end

local function go(where: string): Act
	return function(): app.Signal?
		return { go = where :: any }
	end
end

local ACTS: { [string]: Act } = {
	["continue"] = continue_,
	back = back,
	dive = explore.dive,
	pivot = explore.pivot,
	diverge = phase("divergent"),
	converge = phase("convergent"),
	status = status,
	scoring = ranking,
	energy = function(self: app.App): app.Signal?
		return turning.energy(self, "asked")
	end,
	["plan-preview"] = plan,
	preview = function(self: app.App): app.Signal?
		brief.preview(self)
		return nil
	end,
	sessions = function(self: app.App): app.Signal?
		launch.show(self.t)
		return nil
	end,
	technique = explore.technique,
	framework = explore.framework,
	premortem = examine.premortem,
	spike = examine.spike,
	["security-check"] = examine.security,
	modes = function(self: app.App): app.Signal?
		leader.show(self)
		return nil
	end,
	mode = leader.choose,
	party = party.act,
	panel = panel.act,
	save = function(self: app.App): app.Signal?
		app.show_saved(self, app.save(self))
		return nil
	end,
	finish = go("finish"),
	quit = go("quit"),
	abandon = go("abandon"),
}

--- Carries out a command.
function actions.act(self: app.App, name: string, argument: string): app.Signal?
	return ACTS[name](self, argument)
end

return actions
