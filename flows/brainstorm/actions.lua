--!strict
--- What each command does: the one table from a command's name to its action. An action returns where it leads, or nil where
--- the open question is asked again.

local angles = require("./angles")
local app = require("./app")
local approaches = require("./approaches")
local assessments = require("./assessments")
local brief = require("./brief")
local brief_draft = require("./brief_draft")
local checkpoints = require("./checkpoints")
local context = require("./context")
local ems = require("./ems")
local launch = require("./launch")
local leader = require("./leader")
local list = require("../common/list")
local notebook = require("./notebook")
local noting = require("./noting")
local panel = require("./panel")
local party = require("./party")
local path = require("./path")
local scoring = require("./scoring")
local session = require("./session")
local stories = require("./stories")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local actions = {}

type Action = (self: app.App, argument: string) -> app.Signal?

--- Shows where the session went back or forward to, as the specification's screen has it.
local function show_jump(self: app.App, title: string, from: path.Place)
	local t = self.t
	local s = self.doc.session
	local entry = session.open_iteration(self.doc)
	local lines: { string } = {
		t("rule"),
		title,
		"   " .. t("back.iteration", { from = from.iteration, to = s.iteration }),
		"   " .. t("back.ems", { from = from.ems, to = s.ems, delta = ems.with_sign(s.ems - from.ems) }),
		"   " .. t("back.phase", { from = from.phase, to = s.phase }),
		"",
		"   " .. t("back.restored", { iteration = s.iteration }),
	}
	for _, question in entry.questions do
		table.insert(lines, `   - {question}`)
	end
	table.insert(lines, t("rule"))
	ui.say("```text\n" .. table.concat(lines, "\n") .. "\n```")
	if session.has_later_iterations(self.doc) then
		ui.say(t("back.how"))
	end
end

local function go_back(self: app.App, argument: string): app.Signal?
	local steps = tonumber(argument) or 1
	local from, furthest = path.go_back(self.doc, steps)
	if from == nil then
		local s = self.doc.session
		ui.say(
			if furthest == 0
				then self.t("back.nowhere")
				else translations.counted(
					self.t,
					"back.impossible",
					steps,
					{ iteration = s.iteration, most = furthest } :: translations.Vars
				)
		)
		return nil
	end
	app.save(self)
	show_jump(self, translations.counted(self.t, "back.title", steps), from)
	return { go = "jump" }
end

local function go_forward(self: app.App): app.Signal?
	if not session.has_later_iterations(self.doc) then
		return { go = "next" }
	end
	local from = path.go_forward(self.doc) :: path.Place
	app.save(self)
	show_jump(self, self.t("back.forward"), from)
	return { go = "jump" }
end

local function show_status(self: app.App): app.Signal?
	local t = self.t
	local s = self.doc.session
	local values: { number } = {}
	for _, entry in session.counted_history(self.doc) do
		table.insert(values, entry.ems)
	end
	table.insert(values, s.ems)
	ui.say(t("status.title", {
		name = s.slug,
		phase = t(`phases.{s.phase}`),
		iteration = s.iteration,
		limit = self.options.iterations + (self.doc.nietz.more or 0),
		persona = leader.name(self, app.leader(self)),
		minutes = s.duration_minutes,
	}))
	scoring.show_ems(self)
	local proofs: { string } = {}
	for _, axis in ems.AXES do
		local kept: { [string]: string } = self.doc.nietz.evidence or {}
		local evidence = kept[axis.key]
		if evidence ~= nil then
			table.insert(proofs, `- {t(`axes.{axis.key}`)}: “{evidence}”`)
		end
	end
	if #proofs > 0 then
		ui.say(t("status.evidence") .. "\n\n" .. table.concat(proofs, "\n"))
	end
	local lines: { string } = { t("status.course", { line = `\`{ems.sparkline(values)}\`` }), "" }
	local function section(key: string, lines_of: { string })
		table.insert(lines, `**{t(key)}**`)
		table.insert(lines, "")
		for _, line in lines_of do
			table.insert(lines, `- {line}`)
		end
		if #lines_of == 0 then
			table.insert(lines, t("status.nothing"))
		end
		table.insert(lines, "")
	end
	local function noted(kinds: { string }): { string }
		return list.map(notebook.holding(self.doc, kinds), function(entry): string
			return entry.text
		end)
	end
	local ideas = list.map(context.ideas(self), function(idea): string
		return idea.content
	end)
	local risks = noted { "risk" }
	for _, risk in self.doc.nietz.risks do
		table.insert(risks, risk.risk)
	end
	section("status.ideas", ideas)
	section("status.decisions", noted { "decision" })
	section("status.open", noted { "open", "contested" })
	section("status.risks", risks)
	ui.say(table.concat(lines, "\n"))
	return nil
end

local function show_ranking(self: app.App): app.Signal?
	local ideas = context.ideas(self)
	local lines: { string } = {}
	for _, idea in ideas do
		table.insert(lines, `- **{idea.score}/10** {idea.content} · {idea.id}`)
	end
	ui.say(if #lines == 0 then self.t("status.nothing") else table.concat(lines, "\n"))
	return nil
end

local function set_phase(name: string): Action
	return function(self: app.App): app.Signal?
		self.doc.session.phase = name
		if name == "divergent" then
			-- The user asked for it, so the turn at half-way is not announced again.
			self.doc.nietz.crossed = true
		end
		app.save(self)
		return { go = "again" }
	end
end

local function show_plan(self: app.App): app.Signal?
	noting.catch_up(self)
	local drafted = if self.mind == "small" then nil else brief_draft.make(self)
	if drafted ~= nil and drafted.stories == nil then
		ui.say(`{self.t("plan.heading")}\n\n{drafted.sections.stories}`)
		return nil
	end
	local planned: { stories.Story } = if drafted ~= nil then drafted.stories or {} else stories.draft(self, "")
	local lines: { string } = { self.t("plan.title", { size = stories.size(planned) }), "" }
	for _, story in planned do
		table.insert(lines, self.t("plan.row", { priority = story.priority or "", effort = story.effort or "", story = story.text }))
	end
	ui.say(table.concat(lines, "\n"))
	return nil
end

local function leads_to(where: string): Action
	return function(): app.Signal?
		return { go = where :: any }
	end
end

local ACTIONS: { [string]: Action } = {
	["continue"] = go_forward,
	back = go_back,
	dive = angles.dive,
	pivot = angles.pivot,
	diverge = set_phase("divergent"),
	converge = set_phase("convergent"),
	status = show_status,
	scoring = show_ranking,
	energy = function(self: app.App): app.Signal?
		return checkpoints.ask_energy(self, "asked")
	end,
	["plan-preview"] = show_plan,
	preview = function(self: app.App): app.Signal?
		brief.preview(self)
		return nil
	end,
	sessions = function(self: app.App): app.Signal?
		launch.show_sessions(self.t)
		return nil
	end,
	technique = angles.technique,
	framework = angles.framework,
	premortem = assessments.premortem,
	spike = assessments.spike,
	["security-check"] = assessments.security,
	modes = function(self: app.App): app.Signal?
		leader.show(self)
		return nil
	end,
	mode = leader.choose,
	party = party.run_command,
	panel = panel.run_command,
	idea = notebook.command("idea"),
	decide = notebook.command("decision"),
	open = notebook.command("open"),
	fact = notebook.command("fact"),
	strike = notebook.strike,
	rate = notebook.rate,
	ledger = notebook.show_all,
	approaches = approaches.show,
	save = function(self: app.App): app.Signal?
		app.show_saved(self, app.save(self))
		return nil
	end,
	finish = leads_to("finish"),
	quit = leads_to("quit"),
	abandon = leads_to("abandon"),
}

--- Carries out a command.
function actions.run(self: app.App, name: string, argument: string): app.Signal?
	return ACTIONS[name](self, argument)
end

return actions
