--!strict
--- What the user says between two cycles: goes on, asks one, tells all, adds a fact or an option, strikes what holds no longer. All
--- of it is the case from then on, for everybody.

local app = require("./app")
local conversation = require("./conversation")
local dialogue = require("./dialogue")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local known = require("./known")
local list = require("../common/list")
local members = require("./members")
local persona_turns = require("./persona_turns")
local personas = require("@nietz/personas")
local proposals = require("./proposals")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local interjections = {}

--- Returns the points that a small mind hears in a cycle: those of the cycle before, with answers to the user since.
function interjections.heard_points(self: app.App, number: number): { app.Point }
	return list.filter(self.points, function(point: app.Point): boolean
		return point.cycle == number - 1
	end)
end

--- Returns what a cycle is about: the question, and what the user said to all since the cycle before.
function interjections.topic(self: app.App): string
	local cycles = self.doc.councilDiscussions
	local since = if #cycles > 0 then #cycles[#cycles].messageTurns else 0
	local first = if since > 0 then cycles[#cycles].messageTurns[1] else nil
	local remarks: { string } = {}
	for _, said in self.doc.nietz.said or {} :: { session.Said } do
		local before = self.doc.messageTurns[said.after]
		if said.to == nil and before ~= nil and first ~= nil then
			for _, id in cycles[#cycles].messageTurns do
				if id == before.turnId then
					table.insert(remarks, said.text)
				end
			end
		end
	end
	return if #remarks > 0
		then `{self.doc.metadata.topic} ({self.t("debate.user")}: {table.concat(remarks, "; ")})`
		else self.doc.metadata.topic
end

--- Takes what the user says to all into the case.
function interjections.tell_all(self: app.App, kind: string, words: string)
	app.record_event(self, "said", { text = words })
	conversation.tell_user(self, "The user says to all", app.hear(self, kind, words))
	ui.say(self.t("between.heard"))
end

local function add_option(self: app.App, words: string)
	local id = proposals.letter_at(#self.doc.metadata.options + 1)
	local option = { id = id, text = app.to_line(words), from = json.array({}), by = json.array({ "User" }) }
	app.record_event(self, "said", { text = words })
	app.record_event(self, "options", { options = json.array({ option }) })
	app.tell(self, `# The user adds an option\n\n{id}: {option.text}`)
	ui.say(self.t("debate.option", { id = id, from = "", text = option.text, by = "User" }))
end

--- Shows what the user said that was not struck, with its numbers, and marks what their later words replaced.
function interjections.show_facts(self: app.App)
	known.find_replaced(self)
	local taken_back: { app.Values } = self.doc.nietz.takenBack or {} :: { app.Values }
	local lines = list.map(ledger.holding(self.book), function(entry: ledger.Entry): string
		local marks = ""
		for _, gone in taken_back do
			if ledger.is_said(gone.quote, entry.text) and (gone.by == nil or not ledger.is_said(gone.by, entry.text)) then
				local by = if gone.by ~= nil then self.t("between.replaced_by", { by = gone.by }) else ""
				marks ..= self.t("between.replaced", { quote = gone.quote, by = by })
			end
		end
		return `- **{entry.id}** {entry.text}{marks}`
	end)
	ui.say(if #lines > 0 then table.concat(lines, "\n") else self.t("between.no_facts"))
end

--- Takes back what the user said: a sentence by its number, or just these words of it. Returns whether there was anything.
function interjections.strike(self: app.App, number: string): boolean
	local id = tonumber(number)
	local entry = if id then ledger.find(self.book, id) else nil
	if entry ~= nil and app.take_back(self, entry.id, nil) then
		app.tell(self, `# The user takes back U{entry.id}\n\nIt holds no longer: {entry.text}`)
		ui.say(self.t("between.struck", { text = entry.text }))
		return true
	end
	local said = list.some(ledger.holding(self.book), function(one: ledger.Entry): boolean
		return ledger.is_said(number, one.text)
	end)
	if id ~= nil or not said then
		ui.say(self.t("between.no_fact", { id = number }))
		return false
	end
	app.record_event(self, "taken_back", { quote = number })
	app.tell(self, `# The user takes words back\n\nThey hold no longer: {number}`)
	ui.say(self.t("between.struck", { text = number }))
	return true
end

--- Lets whoever is meant join the session for an answer, and returns whether it is a guest.
local function seat_of(self: app.App, persona: personas.Persona): boolean
	local sits = list.some(self.seats, function(seat): boolean
		return seat.slug == persona.slug
	end)
	if
		not sits
		and list.find(self.doc.participants, function(one: session.Participant): boolean
				return one.name == persona.name
			end)
			== nil
	then
		app.record_event(self, "called_in", { participant = app.new_participant(persona, false, true) })
		ui.say(self.t("between.called_in", { who = persona.name }))
	end
	return not sits
end

--- Asks one persona the user's question; all hear question and answer.
local function ask_one(self: app.App, name: string, question: string, number: number)
	local persona = members.find(name) :: personas.Persona
	local guest = seat_of(self, persona)
	app.record_event(self, "said", { text = question, to = name })
	conversation.tell_user(self, `The user asks {name}`, app.hear(self, "remark", question))
	local heard = persona_turns.answer(self, persona, question, interjections.heard_points(self, number + 1), guest)
	if heard ~= nil then
		local _, told = persona_turns.record(self, name, heard, number, true)
		app.tell(self, told)
	end
end

--- Says that nobody, or more than one, is called so.
local function say_unknown(self: app.App, line: dialogue.Said, names: { string })
	if #line.several > 1 then
		ui.say(self.t("between.several", { typed = line.typed, names = table.concat(line.several, ", ") }))
		return
	end
	local near = text.nearest(line.typed, names) or members.nearest(line.typed)
	local hint = if near then self.t("between.did_you_mean", { name = near }) else ""
	ui.say(`{self.t("between.unknown", { typed = line.typed })}{hint} {self.t("between.here", { names = table.concat(names, ", ") })}`)
end

--- Takes lines of the user at a prompt. Returns whether the debate goes on: where they said so, or went on and `on_enter` says it of
--- whether they said anything.
local function listen(self: app.App, id: string, prompt: string, number: number, on_enter: (said: boolean) -> boolean): boolean
	local names = list.map(self.seats, function(persona): string
		return persona.name
	end)
	local others = list.map(members.debaters(), function(persona): string
		return persona.name
	end)
	local said = false
	while true do
		local line = dialogue.ask(self.t, id, "between", prompt, names, others)
		if line.kind == "empty" then
			return on_enter(said)
		elseif line.kind == "command" and line.name == "go-on" then
			return true
		elseif line.kind == "command" and line.name == "stop" then
			return false
		elseif line.kind == "command" and line.name == "fact" then
			interjections.tell_all(self, "fact", line.text)
			said = true
		elseif line.kind == "command" and line.name == "option" then
			add_option(self, line.text)
			said = true
		elseif line.kind == "command" and line.name == "strike" then
			said = interjections.strike(self, line.text) or said
		elseif line.kind == "command" and line.name == "facts" then
			interjections.show_facts(self)
		elseif line.kind == "command" then
			self.limit.extended, self.limit.cycles = true, math.max(self.limit.most, self.limit.cycles)
			app.record_event(self, "extended", { limit = self.limit.cycles })
			ui.say(self.t("between.extended", { limit = self.limit.cycles }))
		elseif line.kind == "address" and line.name == nil then
			say_unknown(self, line, names)
		elseif line.kind == "address" and line.text == "" then
			ui.say(self.t("between.ask_what", { name = line.name }))
		elseif line.kind == "address" then
			ask_one(self, line.name, line.text, number)
			said = true
		else
			interjections.tell_all(self, "remark", line.text)
			said = true
		end
	end
end

--- Asks, before the debate begins, whether there is anything else that all should know; nothing is where the user goes on.
function interjections.before(self: app.App)
	local prompt = `{self.t("before.prompt")}\n\n{self.t("before.ask")}`
	while true do
		local line = dialogue.ask(self.t, "before", "before", prompt, {})
		if line.kind == "text" then
			conversation.tell_user(self, "The user adds", app.hear(self, "context", line.text))
			return
		elseif line.kind == "command" and line.name == "facts" then
			interjections.show_facts(self)
		elseif line.kind == "command" and line.name == "strike" then
			interjections.strike(self, line.text)
		else
			return
		end
	end
end

--- Takes lines of the user between two cycles. Returns whether the debate goes on.
function interjections.hear(self: app.App, number: number): boolean
	local prompt = `{self.t("between.prompt", { number = number + 1, limit = self.limit.cycles })}\n\n{self.t("between.ask")}`
	return listen(self, "between", prompt, number, function(): boolean
		return true
	end)
end

--- Asks, where the debate is over, whether the council has anything wrong. Returns whether it debates once more: whoever said
--- something is heard by all first, within the limit of cycles.
function interjections.last_word(self: app.App, number: number): boolean
	local then_what = self.t(if number >= self.limit.cycles then "between.heard_only" else "between.debated")
	local prompt = `{self.t("between.last", { then_what = then_what })}\n\n{self.t("between.last_ask")}`
	local goes_on = listen(self, "last-word", prompt, number, function(said): boolean
		return said
	end)
	if goes_on and number >= self.limit.cycles then
		ui.say(self.t("debate.no_room", { limit = self.limit.cycles }))
		return false
	end
	return goes_on
end

return interjections
