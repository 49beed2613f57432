--!strict
--- The command `party`: roles of a team discuss the question at hand, each in a call of its own. In the first round nobody
--- hears the others, so that views differ; later they do. Where all agree, a contrarian comes in.

local app = require("./app")
local discussion = require("./discussion")
local json = require("@nietz/json")
local list = require("../common/list")
local personas = require("@nietz/personas")
local round = require("../common/round")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local party = {}

--- How many roles speak, and the most that may be added to.
local DEFAULT_ROLES = 3
local MAX_ROLES = 5

local function names_of(chosen: { personas.Persona }): { string }
	return list.map(chosen, function(persona): string
		return persona.name
	end)
end

--- Lets the contrarian answer when nobody disagrees.
local function add_contrarian(self: app.App, points: { round.Point }, speak: round.Speak): round.Contribution?
	local contrarian = personas.find("contrarian")
	if contrarian == nil then
		return nil
	end
	ui.say(self.t("voices.added", { name = contrarian.name }))
	local contribution = round.speak_once(contrarian, points, true, speak)
	if contribution ~= nil then
		discussion.show_contribution(self, contribution, points)
	end
	return contribution
end

local function synthesis_text(self: app.App, found: discussion.Synthesis): string
	local parts: { string } = {}
	if #found.agreed > 0 then
		table.insert(parts, `{self.t("voices.consensus")} {table.concat(found.agreed, "; ")}`)
	end
	if #found.contested > 0 then
		table.insert(parts, `{self.t("voices.debate")} {table.concat(found.contested, "; ")}`)
	end
	return table.concat(parts, " · ")
end

--- Runs one round and asks the user its question.
function party.run_round(self: app.App): app.Signal?
	local s = self.doc.session
	local points: { round.Point } = if s.party_active then discussion.last_points(self) else {}
	local begins = not s.party_active
	s.mode, s.party_active, s.panel_active = "party", true, false
	self.doc.nietz.heard = s.iteration
	local always = { "architect" }
	for _, slug in self.doc.nietz.voices do
		if table.find(always, slug) == nil and #always < MAX_ROLES then
			table.insert(always, slug)
		end
	end
	local focus = if self.next_speaker then personas.get(self.next_speaker) else nil
	self.next_speaker = nil
	local chosen = if focus then { focus } else discussion.choose_personas(self, "party", DEFAULT_ROLES, always)
	-- A second round on the same question discusses what the first one left open.
	local thread = self.doc.nietz.thread
	local topic = discussion.topic(self)
	local from = topic
	topic = if thread ~= nil and thread.from == topic then thread.next else topic
	local number = #s.party_history + 1
	ui.say(self.t("voices.round", { what = self.t("voices.party"), round = number, topic = topic }))
	ui.say(self.t("voices.with", { names = table.concat(names_of(chosen), ", ") }))
	local speak = discussion.speaker(self, "voice", 3, { question = topic })
	local function show(contribution: round.Contribution)
		discussion.show_contribution(self, contribution, points)
	end
	local found: { round.Contribution } = if #points == 0
		then round.speak_blind(chosen, points, speak, discussion.on_failure(self), discussion.points_made(self), show)
		else round.speak_in_turn(chosen, points, speak, show)
	if #found == 0 then
		ui.say(self.t("voices.nothing_new"))
		return nil
	end
	local synthesis = discussion.synthesize(self, topic, points)
	if synthesis.from_model and #synthesis.contested == 0 then
		local other = add_contrarian(self, points, speak)
		if other ~= nil then
			table.insert(found, other)
			synthesis.contested = { other.texts[1] }
		end
	end
	local contributions = json.array({} :: { session.ByRole })
	local selected = json.array({} :: { string })
	for _, contribution in found do
		table.insert(selected, contribution.name)
		table.insert(contributions, {
			persona = contribution.name,
			key_points = json.array(table.clone(contribution.texts)),
			references = contribution.references,
		})
	end
	table.insert(s.party_history, {
		round = number,
		topic = topic,
		personas_selected = selected,
		contributions = contributions,
		synthesis = synthesis_text(self, synthesis),
		user_question = synthesis.question,
	})
	self.doc.nietz.thread = { from = from, next = synthesis.question }
	discussion.keep(self, "party", number, synthesis, points)
	if begins then
		ui.say(self.t("voices.stays"))
	end
	return discussion.ask_user(self, "party", "voices.question", synthesis.question)
end

--- Ends the party.
function party.stop(self: app.App)
	local s = self.doc.session
	s.mode, s.party_active = "standard", false
	app.save(self)
	ui.say(self.t("voices.left"))
end

--- The command `party [add|focus NAME|exit]`.
function party.run_command(self: app.App, argument: string): app.Signal?
	local verb, name = string.match(text.fold(argument), "^(%S*)%s*(.-)%s*$")
	if verb == "exit" then
		if self.doc.session.party_active then
			party.stop(self)
		else
			ui.say(self.t("voices.not_active", { what = self.t("voices.party") }))
		end
		return nil
	elseif verb == "add" or verb == "focus" then
		local persona = discussion.find_persona(self, "party", name :: string)
		if persona == nil then
			return nil
		elseif verb == "add" then
			local added = self.doc.nietz.voices
			if table.find(added, persona.slug) == nil then
				table.insert(added, persona.slug)
			end
			app.save(self)
			ui.say(self.t("voices.added", { name = persona.name }))
			return nil
		end
		self.next_speaker = persona.slug
		ui.say(self.t("voices.focused", { name = persona.name }))
	elseif verb ~= "" then
		ui.say(self.t("voices.usage"))
		return nil
	end
	return party.run_round(self)
end

return party
