--!strict
--- Party: roles of a team discuss the question at hand, each in a call of its own. Their first words are said blind,
--- so that they differ; later rounds hear each other. When all agree, a contrarian comes in.

local app = require("./app")
local json = require("@nietz/json")
local personas = require("@nietz/personas")
local round = require("../common/round")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local voices = require("./voices")

local party = {}

--- Who speaks unless more are added.
local USUAL = 3
local MOST = 5

local function names(list: { any }): { string }
	local found: { string } = json.array({} :: { string })
	for _, item in list do
		table.insert(found, item.name)
	end
	return found
end

--- Returns what the last round of this party said, so that the next one can refer to it.
local function heard(self: app.App): { round.Point }
	local points: { round.Point } = {}
	local history = self.doc.session.party_history
	local last = if self.doc.session.party_active then history[#history] else nil
	for _, contribution in if last then last.contributions else {} do
		for _, line in contribution.key_points do
			table.insert(points, { id = `P{#points + 1}`, by = contribution.persona, text = line })
		end
	end
	return points
end

--- Lets the contrarian answer when nobody disagrees.
local function contradict(self: app.App, points: { round.Point }, speak: round.Speak): round.Contribution?
	local contrarian = personas.find("contrarian")
	if contrarian == nil then
		return nil
	end
	ui.say(self.t("voices.added", { name = contrarian.name }))
	local contribution = round.speak_once(contrarian, points, true, speak)
	if contribution ~= nil then
		voices.show(self, contribution)
	end
	return contribution
end

local function summary(self: app.App, found: voices.Synthesis): string
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
function party.round(self: app.App): app.Signal?
	local s = self.doc.session
	local points = heard(self)
	s.mode, s.party_active, s.panel_active = "party", true, false
	s.flow_state.heard = s.iteration
	local always = { "architect" }
	for _, slug in s.flow_state.voices do
		if table.find(always, slug) == nil and #always < MOST then
			table.insert(always, slug)
		end
	end
	local focus = if self.speaker then personas.get(self.speaker) else nil
	self.speaker = nil
	local chosen = if focus then { focus } else voices.select(self, "party", USUAL, always)
	-- A second round on the same question goes on from what the first one left open.
	local talk = s.flow_state.talk
	local topic = if talk ~= nil and talk.from == s.last_question then talk.next else voices.topic(self)
	local number = #s.party_history + 1
	ui.say(self.t("voices.round", { what = self.t("voices.party"), round = number, topic = topic }))
	ui.say(self.t("voices.with", { names = table.concat(names(chosen), ", ") }))
	local speak = voices.speaker(self, "voice", 3, { question = topic })
	local found: { round.Contribution } = if #points == 0
		then round.speak_blind(chosen, points, speak, voices.failed(self))
		else round.speak_in_turn(chosen, points, speak)
	for _, contribution in found do
		voices.show(self, contribution)
	end
	if #found == 0 then
		return nil
	end
	local together = voices.synthesis(self, topic, points)
	if together.drawn and #together.contested == 0 then
		local other = contradict(self, points, speak)
		if other ~= nil then
			table.insert(found, other)
			together.contested = { other.texts[1] }
		end
	end
	local contributions: { any } = json.array({})
	for _, contribution in found do
		table.insert(contributions, {
			persona = contribution.name,
			key_points = json.array(table.clone(contribution.texts)),
			references = contribution.references,
		})
	end
	table.insert(s.party_history, {
		round = number,
		topic = topic,
		personas_selected = names(found),
		contributions = contributions,
		synthesis = summary(self, together),
		user_question = together.question,
	})
	s.flow_state.talk = { from = s.last_question, next = together.question }
	app.save(self)
	if summary(self, together) ~= "" then
		ui.say(self.t("voices.synthesis", { text = summary(self, together) }))
	end
	return voices.put(self, "party", "voices.question", together.question)
end

--- Ends the party.
function party.leave(self: app.App)
	local s = self.doc.session
	s.mode, s.party_active = "standard", false
	app.save(self)
	ui.say(self.t("voices.left"))
end

--- The command `party [add|focus NAME|exit]`.
function party.act(self: app.App, argument: string): app.Signal?
	local verb, name = string.match(text.fold(argument), "^(%S*)%s*(.-)%s*$")
	if verb == "exit" then
		if self.doc.session.party_active then
			party.leave(self)
		else
			ui.say(self.t("voices.not_active", { what = self.t("voices.party") }))
		end
		return nil
	elseif verb == "add" or verb == "focus" then
		local persona = voices.find(self, "party", name :: string)
		if persona == nil then
			return nil
		elseif verb == "add" then
			local added = self.doc.session.flow_state.voices
			if table.find(added, persona.slug) == nil then
				table.insert(added, persona.slug)
			end
			app.save(self)
			ui.say(self.t("voices.added", { name = persona.name }))
			return nil
		end
		self.speaker = persona.slug
		ui.say(self.t("voices.focused", { name = persona.name }))
	end
	return party.round(self) or { go = "again" }
end

return party
