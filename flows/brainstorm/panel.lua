--!strict
--- The command `panel`: experts, each with a framework, take positions, then debate them, then only ask questions.

local app = require("./app")
local discussion = require("./discussion")
local json = require("@nietz/json")
local round = require("../common/round")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local panel = {}

local MAX_EXPERTS = 3
local PHASES = { "discussion", "debate", "socratic" }

--- Returns the phase after the last round's: a panel ends in questions.
function panel.phase_after(phase: string?): string
	if phase == nil then
		return PHASES[1]
	end
	local index = table.find(PHASES, phase) or 1
	return PHASES[math.min(index + 1, #PHASES)]
end

--- Returns the phase of the next round of a session.
function panel.next_phase(doc: session.Doc): string
	local history = doc.session.panel_history
	local last = history[#history]
	return panel.phase_after(if last then last.phase else nil)
end

--- Runs one round in this phase and asks the user for a verdict.
function panel.run_round(self: app.App, phase: string): app.Signal?
	local s = self.doc.session
	local points: { round.Point } = if s.panel_active then discussion.last_points(self) else {}
	local last = if s.panel_active then s.panel_history[#s.panel_history] else nil
	s.mode, s.panel_active, s.party_active = "panel", true, false
	self.doc.nietz.heard = s.iteration
	local experts = discussion.choose_personas(self, "panel", MAX_EXPERTS, {})
	-- The phases of one panel are about one thing.
	local topic = if last ~= nil and phase ~= "discussion" then last.topic else discussion.topic(self)
	local number = #s.panel_history + 1
	ui.say(self.t("voices.round", { what = self.t("voices.panel"), round = number, topic = topic }))
	ui.say(self.t("voices.phase", { phase = self.t(`voices.phases.{phase}`) }))
	local speak = discussion.speaker(self, "expert", if phase == "socratic" then 2 else 1, { question = topic, stage = phase })
	local function show(contribution: round.Contribution)
		discussion.show_contribution(self, contribution, points)
	end
	local found: { round.Contribution } = if #points == 0
		then round.speak_blind(experts, points, speak, discussion.on_failure(self), discussion.points_made(self), show)
		else round.speak_in_turn(experts, points, speak, show)
	local framework: { [string]: string } = {}
	local selected: { string } = json.array({} :: { string })
	for _, expert in experts do
		framework[expert.slug] = expert.meta.framework or ""
		table.insert(selected, expert.name)
	end
	local contributions = json.array({} :: { session.ByExpert })
	for _, contribution in found do
		table.insert(contributions, {
			expert = contribution.name,
			framework = framework[contribution.slug],
			position = table.concat(contribution.texts, " "),
			references = contribution.references,
		})
	end
	if #found == 0 then
		ui.say(self.t("voices.nothing_new"))
		return nil
	end
	local synthesis = discussion.synthesize(self, topic, points)
	table.insert(s.panel_history, {
		round = number,
		topic = topic,
		phase = phase,
		experts_selected = selected,
		contributions = contributions,
		synthesis = {
			convergent = json.array(table.clone(synthesis.agreed)),
			tensions = json.array(table.clone(synthesis.contested)),
		},
	})
	discussion.keep(self, "panel", number, synthesis, points)
	return discussion.ask_user(self, "panel", if phase == "debate" then "voices.arbitrate" else "voices.question", synthesis.question)
end

--- Ends the panel.
function panel.stop(self: app.App)
	local s = self.doc.session
	s.mode, s.panel_active = "standard", false
	app.save(self)
	ui.say(self.t("voices.left"))
end

--- The command `panel [debate|socratic|exit]`; without a word, the next phase.
function panel.run_command(self: app.App, argument: string): app.Signal?
	local verb = text.trim(text.fold(argument))
	if verb == "exit" then
		if self.doc.session.panel_active then
			panel.stop(self)
		else
			ui.say(self.t("voices.not_active", { what = self.t("voices.panel") }))
		end
		return nil
	end
	local s = self.doc.session
	local phase = if verb ~= "" then verb elseif s.panel_active then panel.next_phase(self.doc) else "discussion"
	return panel.run_round(self, phase)
end

return panel
