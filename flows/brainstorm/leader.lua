--!strict
--- Which persona leads the session, and when that changes by itself. A change is always announced; a leader whom the user chose
--- stays.

local app = require("./app")
local dialogue = require("./dialogue")
local lang = require("./lang")
local list = require("../common/list")
local notebook = require("./notebook")
local personas = require("@nietz/personas")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local leader = {}

--- Words of somebody who has stopped doubting.
local CERTAIN_WORDS = { "evidemment", "forcement", "clairement", "obviously", "clearly", "of course", "necessarily", "bien sur" }

--- Two iterations that gain fewer points of EMS are slow.
leader.SLOW = 5

--- Returns the slug of who should lead and why, from what was said and how the session goes. Pure.
function leader.suggest(said: string, history: { session.Iteration }, ems: number, decisions: number): (string, string)
	local folded = text.fold(said)
	for _, word in CERTAIN_WORDS do
		if string.find(folded, word, 1, true) ~= nil then
			return "sparring", "certain"
		end
	end
	local before = history[#history - 1]
	if before ~= nil and ems - before.ems < leader.SLOW then
		return "pragmatique", "stuck"
	elseif #history >= 5 and decisions == 0 then
		return "pragmatique", "stuck"
	end
	return "architecte", "open"
end

--- Returns what a leader is called in the user's language; one of somebody's own as their file says.
function leader.name(self: app.App, persona: personas.Persona): string
	local names: { [string]: string } = lang.data(self.lang, "leaders")
	return names[persona.slug] or persona.name
end

--- Returns the facilitator that a person means by a name, or nil.
function leader.find(name: string): personas.Persona?
	return list.find(personas.list({ tag = "facilitator" }), function(persona): boolean
		return persona.slug == text.fold(name) or text.fold(persona.name) == text.fold(name)
	end)
end

--- Returns the slugs of all who can lead.
function leader.slugs(): { string }
	return list.map(personas.list({ tag = "facilitator" }), function(persona): string
		return persona.slug
	end)
end

--- Lets this persona lead, and says so when that is a change.
function leader.switch(self: app.App, slug: string, why: string)
	if self.doc.session.persona == slug or personas.find(slug) == nil then
		return
	end
	self.doc.session.persona = slug
	ui.say(self.t("persona.switched", { name = leader.name(self, personas.get(slug)), why = self.t(`persona.why.{why}`) }))
end

--- Changes the leader if the session asks for it and the user has not chosen one.
function leader.adjust(self: app.App, said: string)
	local s = self.doc.session
	if not self.doc.nietz.pinned then
		leader.switch(self, leader.suggest(said, session.counted_history(self.doc), s.ems, #notebook.holding(self.doc, { "decision" })))
	end
end

--- The command `modes`.
function leader.show(self: app.App)
	local lines: { string } = { self.t("persona.list"), "" }
	for _, persona in personas.list({ tag = "facilitator" }) do
		local mark = if persona.slug == self.doc.session.persona then " ←" else ""
		table.insert(lines, `- \`{persona.slug}\` {leader.name(self, persona)}: {persona.summary}{mark}`)
	end
	ui.say(table.concat(lines, "\n"))
end

--- The command `mode [name|auto]`; without a name it asks.
function leader.choose(self: app.App, name: string): app.Signal?
	if name == "" then
		local options: { dialogue.Option } = {}
		for _, persona in personas.list({ tag = "facilitator" }) do
			table.insert(options, { value = persona.slug, label = leader.name(self, persona) })
		end
		local chosen, signal = dialogue.choose(self, "mode", self.t("persona.list"), options, self.doc.session.persona)
		if chosen == nil then
			return signal
		end
		name = chosen
	end
	local found = leader.find(name)
	if text.fold(name) == "auto" then
		self.doc.nietz.pinned = false
		ui.say(self.t("persona.auto"))
	elseif found == nil then
		ui.say(self.t("persona.unknown", { name = name }))
	else
		self.doc.nietz.pinned = true
		if self.doc.session.persona == found.slug then
			ui.say(self.t("persona.leads", { name = leader.name(self, found) }))
		end
		leader.switch(self, found.slug, "chosen")
	end
	app.save(self)
	return nil
end

return leader
